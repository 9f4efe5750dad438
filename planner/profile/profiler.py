"""A profiler measures devices in parallel, then their links (Gu et al., steps 1 and 2)."""

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import planner
from planner.agents.addresses import try_addresses
from planner.agents.client import AgentClient
from planner.agents.pool import AgentPool, in_parallel
from planner.console import OnProgress
from planner.errors import PlannerError
from planner.fleet.device import Device, Fleet
from planner.profile import repeats, reuse
from planner.profile.crowd import Crowd
from planner.profile.device_profiler import DeviceProfiler
from planner.profile.file import DeviceProfile, Profile, kernels_of, load_profile, machines_of
from planner.profile.fleet_power import FleetPowerModels
from planner.profile.link_curves import unchecked
from planner.profile.link_probe import LinkProber, Outstanding, Result
from planner.profile.recorder import ProfileRecorder
from planner.profile.request import ProfileRequest
from planner.profile.step_timing import StepTimer, TimeBudget
from profilers.records.json_values import SCHEMA
from profilers.records.steps import Repeat

#: About what both probes of a link take: 4 to 6 s in labs of three to six devices.
PROBE_S = 5.0


class Profiler:
    """Measures what a profile lacks, and writes the profile after every measurement.

    path: of profile.json; what it holds of other devices of the fleet stays.
    fresh: measure again what the profile holds.
    only: names of the devices to measure; none are all.

    Raises FleetError for a name that is not in the fleet.
    Raises RecordError for a profile that cannot be read, PowerError for such a power model.
    """

    def __init__(
        self,
        fleet: Fleet,
        request: ProfileRequest,
        path: Path,
        on_progress: OnProgress,
        fresh: bool = False,
        only: Sequence[str] = (),
    ) -> None:
        self._chosen = tuple(fleet.device(name) for name in only) or fleet.devices
        self._request = request
        self._power_models = FleetPowerModels(fleet, path.parent)
        chosen = {device.name for device in self._chosen}
        again = chosen if fresh else set()
        before = load_profile(path) if path.exists() and len(again) < len(fleet.devices) else None
        steps = before.steps_planned if before is not None and not request.models else request.steps_planned
        start = Profile(SCHEMA, planner.__version__, time.time(), {}, (), (), {}, steps)
        earlier = reuse.carry_over(before, start, fleet, chosen, again)
        self.recorder = ProfileRecorder(earlier, path, on_progress)
        common_s = request.idle_s + PROBE_S * len(self._outstanding(chosen).names)
        timer = StepTimer(
            request,
            {model: request.fingerprint(model) for model in request.models},
            TimeBudget(request.steps_planned, len(fleet.devices), common_s / max(1, len(request.models))),
            self._sharing,
            on_progress,
        )
        self._devices = DeviceProfiler(request, timer, self.recorder)

    def run(self, log: Path | None = None) -> Profile:
        """Profile the fleet; the profile says why a model, device or link failed."""
        self.recorder.change(lambda profile: profile)  # a path that cannot be written ends it here
        with AgentPool(log) as pool:
            try:
                self._measure(pool)
            except KeyboardInterrupt:
                self.recorder.stop()
                raise
        return self.recorder.profile

    def _measure(self, pool: AgentPool) -> None:
        pool.open(self._chosen)
        for name, error in pool.errors.items():
            self.recorder.note(name, error=str(error))
        self._in_turn(pool, machines_of, self._devices.identify)
        self._in_turn(pool, kernels_of, self._devices.spin)
        working = self._working(pool)
        in_parallel(
            working,
            lambda name: self._devices.start(pool.devices[name], working[name], pool.reached_s[name]),
            at_once=max(1, len(working)),
        )
        self._in_turn(pool, kernels_of, self._devices.measure)
        self._crowds(pool, times=1)
        self._links(pool)
        self._in_turn(pool, kernels_of, self._devices.repeat)
        self._crowds(pool, times=2)
        self._repeat_links(pool)
        self.recorder.on_progress("watts", "fitting power models", None)
        for name, known in self._power_models.estimated(self.recorder.profile.devices).items():
            self.recorder.note(name, idle=known.idle, steps=known.steps)

    def _in_turn(
        self,
        pool: AgentPool,
        groups_of: Callable[[Mapping[str, DeviceProfile]], Mapping[str, tuple[str, ...]]],
        work: Callable[[Device, AgentClient], None],
    ) -> None:
        """Run ``work`` on groups of devices in parallel, on those of one group in turn.

        They would disturb each other. Devices that failed are left out.
        """

        def in_turn(first: str) -> None:
            for name in groups[first]:
                if self.recorder.profile.devices[name].error is None:
                    work(pool.devices[name], pool.agents[name])

        able = [device.name for device in self._chosen if device.name in pool.agents]
        groups = groups_of({name: self.recorder.profile.devices[name] for name in able})
        in_parallel(groups, in_turn)

    def _sharing(self, name: str) -> int:
        return next(len(names) for names in kernels_of(self.recorder.profile.devices).values() if name in names)

    def _crowds(self, pool: AgentPool, times: int) -> None:
        """Time models on devices that share a kernel while all of these make steps.

        times: how often they then have been, unless they were before.
        """
        known = {name: self.recorder.profile.devices[name] for name in self._working(pool)}
        for model, names in itertools.product(self._request.models, kernels_of(known).values()):
            timed = {name: self._devices.timed(pool.devices[name], model) for name in names}
            crowd = frozenset(name for name, each in timed.items() if each)
            lacking = any(repeats.lacks_crowd(each, crowd, times) for each in timed.values() if each)
            if len(crowd) > 1 and lacking:
                self._crowd(pool, model, crowd)

    def _crowd(self, pool: AgentPool, model: str, names: frozenset[str]) -> None:
        """Time them once more, and again if that differs from how they did before."""
        began = time.monotonic()
        made = [self._beside(pool, model, names)]
        found = tuple(made[0])
        agree = (self._devices.agrees_in_crowd(pool.devices[name], model, found, made[0][name]) for name in found)
        if not all(agree):
            made.append(self._beside(pool, model, names))
        if len(found) > 1:
            took_s = (time.monotonic() - began) / len(found)
            for name in found:
                steps = [each[name] for each in made if name in each]
                self._devices.note_crowd(pool.devices[name], model, found, steps, took_s)

    def _beside(self, pool: AgentPool, model: str, names: frozenset[str]) -> dict[str, Repeat]:
        """Steps of each device that made some beside the others."""
        crowd = Crowd(names)

        def beside(name: str) -> Repeat | None:
            return self._devices.beside(pool.devices[name], pool.agents[name], model, crowd)

        made = in_parallel(sorted(names), beside, at_once=len(names))
        return {name: steps for name, steps in made.items() if steps}

    def _links(self, pool: AgentPool) -> None:
        """Measure the missing links between the devices that have an address."""
        errors: dict[str, str] = {}
        if self._outstanding(self._working(pool)).names:
            began = time.monotonic()
            prober, failed = self._prober(pool)
            for name, error in failed.items():
                self.recorder.fail(name, str(error))
            errors = prober.measure(self._add_link, self._outstanding(prober.agents))
            self._took_for_links(began)
        for what, reason in errors.items():
            self._show(f"{what}: {reason}")
        missing = self._outstanding(self.recorder.profile.devices).names
        known = {**self.recorder.profile.link_errors, **errors}
        kept = {what: known[what] for what in missing if what in known}
        self.recorder.change(lambda profile: profile._replace(link_errors=kept))

    def _repeat_links(self, pool: AgentPool) -> None:
        """Probe links again, after the models were timed again."""
        able = set(self._working(pool))
        once = [each for each in self.recorder.profile.links if unchecked(each) and {each.source, each.target} <= able]
        if once:
            began = time.monotonic()
            prober, failed = self._prober(pool)
            errors = prober.repeat(
                self._add_link, [link for link in once if {link.source, link.target} <= set(prober.agents)]
            )
            for what, reason in {**failed, **errors}.items():
                self._show(f"{what}: probed once only: {reason}")
            self._took_for_links(began)

    def _prober(self, pool: AgentPool) -> tuple[LinkProber, Mapping[str, PlannerError]]:
        """A prober of the devices that have an address, and why others have none.

        Messages are also measured of the bytes of each model's weights.
        """
        able, devices = self._working(pool), self.recorder.profile.devices
        addresses, failed = try_addresses({name: pool.devices[name] for name in able}, able)
        sizes = sorted({steps.parameter_bytes for known in devices.values() for steps in known.steps})
        reached = {name: able[name] for name in addresses}
        return LinkProber(reached, addresses, sizes, self._show, self._request.links), failed

    def _working(self, pool: AgentPool) -> dict[str, AgentClient]:
        devices = self.recorder.profile.devices
        return {name: agent for name, agent in pool.agents.items() if devices[name].error is None}

    def _outstanding(self, names: Iterable[str]) -> Outstanding:
        profile = self.recorder.profile
        have = {(link.source, link.target) for link in profile.links}
        return Outstanding.among(names, have, {(incast.host, incast.direction) for incast in profile.incasts})

    def _add_link(self, result: Result) -> None:
        self.recorder.change(lambda profile: profile.with_link(result, time.time()))

    def _took_for_links(self, began: float) -> None:
        self.recorder.change(lambda profile: profile.with_link_seconds(time.monotonic() - began))

    def _show(self, what: str, share: float | None = None) -> None:
        self.recorder.on_progress("links", what, share)
