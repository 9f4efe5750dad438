"""A profiler measures devices, then links with one of them (Gu et al., steps 1 and 2).

What a plan depends on beyond that is measured after it, for as long as the budget lasts.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import planner
from planner.agents.addresses import try_addresses
from planner.agents.client import AgentClient
from planner.agents.pool import AgentPool, in_parallel
from planner.console import OnProgress, ends
from planner.errors import PlannerError, RemoteError
from planner.fleet.device import Device, Fleet
from planner.profile import reuse, step_timing
from planner.profile.budget import Budget
from planner.profile.contention import together, window_s
from planner.profile.device_profiler import DeviceProfiler
from planner.profile.file import DeviceProfile, Profile, kernels_of, load_profile
from planner.profile.fleet_power import FleetPowerModels
from planner.profile.link_probe import LinkProber, Outstanding, Result
from planner.profile.measurements import NextWanted, StepsWanted, Wanted, hub_of
from planner.profile.recorder import ProfileRecorder
from planner.profile.request import ProfileRequest
from planner.profile.step_timing import StepTimer
from planner.units import seconds
from profilers.records.json_values import SCHEMA
from profilers.stats import mean

#: About the seconds until all devices can be timed, of timing one model, and of one link.
START_S, MODEL_S, LINK_S = 6.0, 5.0, 3.0


class Profiler:
    """Measures what a profile lacks, and writes the profile at the end of each stage.

    path: of profile.json; what it holds of other devices of the fleet stays.
    fresh: measure again what the profile holds.
    only: names of the devices to measure; none are all.
    next_wanted: what to measure more precisely after all else.
    budget: the time that it may take.

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
        next_wanted: NextWanted = lambda profile, done, spent_s: None,
        budget: Budget | None = None,
    ) -> None:
        self._budget, self._next_wanted = budget or Budget(), next_wanted
        self._chosen = tuple(fleet.device(name) for name in only) or fleet.devices
        on_progress = _telling_share(on_progress, expected_s(len(self._chosen), len(request.models)))
        self._request = request
        self._power_models = FleetPowerModels(fleet, path.parent)
        chosen = {device.name for device in self._chosen}
        again = chosen if fresh else set()
        before = load_profile(path) if path.exists() and len(again) < len(fleet.devices) else None
        steps = before.steps_planned if before is not None and not request.models else request.steps_planned
        start = Profile(SCHEMA, planner.__version__, time.time(), {}, (), (), {}, steps)
        earlier = reuse.carry_over(before, start, fleet, chosen, again)
        self.recorder = ProfileRecorder(earlier, path, on_progress)
        fingerprints = {model: request.fingerprint(model) for model in request.models}
        self._devices = DeviceProfiler(request, StepTimer(request, fingerprints, on_progress), self.recorder)

    def run(self, log: Path | None = None) -> Profile:
        """Profile the fleet; the profile says why a model, device or link failed."""
        self.recorder.save()  # a path that cannot be written ends it here
        with AgentPool(log) as pool:
            try:
                self._measure(pool)
            finally:
                self.recorder.stop()
                self.recorder.save()
        return self.recorder.profile

    def _measure(self, pool: AgentPool) -> None:
        pool.open(self._chosen)
        for name, error in pool.errors.items():
            self.recorder.note(name, error=str(error))
        self._at_once(pool, self._devices.identify)
        self._at_once(pool, self._devices.idle)
        self._at_once(pool, self._devices.start_framework)
        self._at_once(pool, self._devices.watch)
        self._time_alone(pool)
        self.recorder.save()
        self._time_together(pool)
        prober = self._links(pool)
        self.recorder.save()
        self._refine(pool, prober)
        if self._budget.told is not None:
            self.recorder.on_progress("profile", self._budget.told, 1.0)
        for name, known in self._power_models.estimated(self.recorder.profile.devices).items():
            self.recorder.note(name, idle=known.idle, steps=known.steps)

    def _at_once(self, pool: AgentPool, work: Callable[[Device, AgentClient], None]) -> None:
        """Run ``work`` on all devices at the same time, without those that failed."""
        working = self._working(pool)

        def on_one(name: str) -> None:
            try:
                work(pool.devices[name], working[name])
            except PlannerError as error:
                self.recorder.fail(name, str(error))

        in_parallel(working, on_one, at_once=max(1, len(working)))

    def _time_alone(self, pool: AgentPool) -> None:
        """Time all models on every device, on those that share a kernel in turn."""
        kernels = kernels_of(self._known(pool))
        in_parallel(kernels, lambda first: self._time_in_turn(pool, kernels[first]))

    def _time_in_turn(self, pool: AgentPool, names: Sequence[str]) -> None:
        """Time all models on devices of one kernel, which build each of them at the same time.

        Nothing else computes there while one of them is timed.
        """
        for model in self._request.models:
            calls = {
                name: call
                for name in names
                if self.recorder.profile.devices[name].error is None
                and (call := self._devices.begin(pool.devices[name], pool.agents[name], model))
            }
            for call in calls.values():
                step_timing.await_ready(call, step_timing.SILENCE_S)
            for name, call in calls.items():
                if self._budget.allows(f"{model} on {name}"):
                    self._devices.measure(pool.devices[name], call, model)
                else:
                    self._devices.leave(pool.devices[name], call, model, self._budget.reason)
        for name in names if not self._budget.is_spent else ():
            self._devices.conclude(pool.devices[name])

    def _time_together(self, pool: AgentPool) -> None:
        """Time models on devices that share a kernel while all of these compute."""
        kernels = kernels_of(self._known(pool))
        for model, names in itertools.product(self._request.models, kernels.values()):
            timed = {name: each for name in names if (each := self._devices.timed(pool.devices[name], model))}
            known_names = [set(each.contention.names) if each.contention else set() for each in timed.values()]
            if len(timed) > 1 and not all(set(timed) <= names for names in known_names):
                lasting_s = window_s(mean(each.gradient_s.values) for each in timed.values())
                if self._budget.allows(f"{model} on {' and '.join(timed)} together"):
                    self._together(pool, model, tuple(timed), lasting_s)

    def _together(self, pool: AgentPool, model: str, names: Sequence[str], lasting_s: float) -> None:
        began = time.monotonic()
        self._show(", ".join(names), f"{model} together")
        calls = {}
        try:
            for name in names:
                calls[name] = self._devices.begin_again(pool.devices[name], pool.agents[name], model, lasting_s)
        except RemoteError as error:
            self._show(names[0], f"{model}: not timed together: {error}")
        found, failed = together(calls, step_timing.SILENCE_S)
        for name, reason in failed.items():
            self._show(name, f"{model}: not timed together with others: {reason}")
        if len(found) > 1:
            took_s = (time.monotonic() - began) / len(found)
            for name, made in found.items():
                self._devices.note_contention(pool.devices[name], model, found, made, took_s)

    def _refine(self, pool: AgentPool, prober: LinkProber | None) -> None:
        """Measure what a plan depends on, the most telling first."""
        done: list[Wanted] = []
        working = self._working(pool)
        while wanted := self._next_wanted(self.recorder.profile, done, self._budget.spent_s):
            done.append(wanted)
            if isinstance(wanted, StepsWanted):
                if wanted.device in working:
                    self._devices.time_more(pool.devices[wanted.device], working[wanted.device], wanted.model)
            elif prober is not None and {*wanted} <= prober.agents.keys():
                self._probe(prober, Outstanding(((wanted.one, wanted.other), (wanted.other, wanted.one)), ()))

    def _links(self, pool: AgentPool) -> LinkProber | None:
        """Measure the missing links of the hub with other devices that have an address."""
        working = self._working(pool)
        if len(working) < 2:
            return None
        began = time.monotonic()
        prober, failed = self._prober(pool, working)
        for name, error in failed.items():
            self.recorder.fail(name, str(error))
        hub = hub_of(self.recorder.profile, list(prober.agents))
        if hub is None:
            return None
        self._probe(prober, self._outstanding(hub, prober.agents))
        took_s = time.monotonic() - began
        self.recorder.change(lambda profile: profile.with_link_seconds(took_s))
        self.recorder.on_progress("links", f"measured with {hub} in {seconds(took_s)}", 1.0)
        return prober

    def _probe(self, prober: LinkProber, probes: Outstanding) -> None:
        errors = prober.measure(self._add_link, probes, self._budget.allows)
        for what, reason in errors.items():
            self._show("links", f"{what}: {reason}")
        kept = {what: why for what, why in self.recorder.profile.link_errors.items() if what not in probes.names}
        self.recorder.change(lambda profile: profile._replace(link_errors={**kept, **errors}))

    def _prober(
        self, pool: AgentPool, working: Mapping[str, AgentClient]
    ) -> tuple[LinkProber, Mapping[str, PlannerError]]:
        """A prober of the devices that have an address, and why others have none.

        Messages are also measured of the bytes of each model's weights.
        """
        devices = self.recorder.profile.devices
        addresses, failed = try_addresses({name: pool.devices[name] for name in working}, working)
        sizes = sorted({steps.size.parameter_bytes for known in devices.values() for steps in known.steps})
        reached = {name: working[name] for name in addresses}
        return LinkProber(
            reached, addresses, sizes, lambda what: self._show("links", what), self._request.links
        ), failed

    def _working(self, pool: AgentPool) -> dict[str, AgentClient]:
        devices = self.recorder.profile.devices
        able = [each.name for each in self._chosen if each.name in pool.agents and devices[each.name].error is None]
        return {name: pool.agents[name] for name in able}

    def _known(self, pool: AgentPool) -> dict[str, DeviceProfile]:
        return {name: self.recorder.profile.devices[name] for name in self._working(pool)}

    def _outstanding(self, hub: str, names: Mapping[str, AgentClient]) -> Outstanding:
        profile = self.recorder.profile
        have = {(link.source, link.target) for link in profile.links}
        measured = {(incast.host, incast.direction) for incast in profile.incasts}
        return Outstanding.with_hub(hub, names, have, measured, profile.beside(hub))

    def _add_link(self, result: Result) -> None:
        self.recorder.change(lambda profile: profile.with_link(result, time.time()))

    def _show(self, who: str, what: str) -> None:
        self.recorder.on_progress(who, what, None)


def expected_s(devices: int, models: int) -> float:
    """About the seconds that profiling takes, of devices that are timed one after the other."""
    return START_S + devices * models * MODEL_S + 2 * max(0, devices - 1) * LINK_S


def _telling_share(on_progress: OnProgress, lasts_s: float) -> OnProgress:
    """The same, with the share of all that has passed where something has not ended."""
    began_s = time.monotonic()

    def told(name: str, what: str, share: float | None) -> None:
        passed = min(0.99, (time.monotonic() - began_s) / lasts_s)
        on_progress(name, what, passed if share is None and not ends(what, share) else share)

    return told
