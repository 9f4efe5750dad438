"""A profiler measures devices in parallel, then their links (Gu et al., steps 1 and 2)."""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import planner
from backends.protocol.orders import CollectFacts, MeasureIdle
from planner.agents.addresses import try_addresses
from planner.agents.client import AgentClient
from planner.agents.pool import AgentPool, in_parallel
from planner.check.findings import what_was_said
from planner.console import OnProgress
from planner.errors import AgentError, PlanError, PlannerError
from planner.fleet.device import Device, Fleet
from planner.json_records import decode, save
from planner.profile import repeats, reuse
from planner.profile.file import Profile, load_profile, machines_of, timing_of
from planner.profile.fleet_power import FleetPowerModels
from planner.profile.link_curves import unchecked
from planner.profile.link_probe import Outstanding, measure_links, repeat_links
from planner.profile.request import ProfileRequest
from planner.profile.step_timing import StepTimer
from planner.profile.time_budget import TimeBudget
from profilers import records

__all__ = ["Profiler", "ProfileRequest"]

#: Seconds without an answer after which a device counts as hung.
ANSWER_S = 60.0
#: About what both probes of a link take: 4 to 6 s in labs of three to six devices.
PROBE_S = 5.0

Timings = tuple[records.StepProfile, ...]


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
        self._fleet = fleet
        self._chosen = tuple(fleet.device(name) for name in only) or fleet.devices
        self._request = request
        self._path = path
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._stopped = False
        self._power_models = FleetPowerModels(fleet, path.parent)
        self.profile = self._previous(fresh)
        common_s = request.idle_s + PROBE_S * self._outstanding([device.name for device in self._chosen]).probes
        machines = machines_of(self.profile.devices).values()
        self._timer = StepTimer(
            request,
            {model: request.fingerprint(model) for model in request.models},
            TimeBudget(request.steps_planned, len(fleet.devices), common_s / len(request.models)),
            {name: len(names) for names in machines for name in names},
            on_progress,
        )

    def run(self, log: Path | None = None) -> Profile:
        """Profile the fleet; the profile says why a model, device or link failed."""
        save(self.profile, self._path)  # a path that cannot be written ends it here, not after minutes
        with AgentPool(log) as pool:
            try:
                self._measure(pool)
            except KeyboardInterrupt:
                with self._lock:
                    self._stopped = True  # agents that end now are no failures
                raise
        return self.profile

    def _measure(self, pool: AgentPool) -> None:
        pool.open(self._chosen)
        for name, error in pool.errors.items():
            self._note(name, error=str(error))
        self._on_machines(pool, self._device)
        self._links(pool)
        self._on_machines(pool, self._repeat_models)
        self._repeat_links(pool)
        self._on_progress("watts", "fitting power models", None)
        for name, known in self._power_models.estimated(self.profile.devices).items():
            self._note(name, idle=known.idle, steps=known.steps)

    def _on_machines(self, pool: AgentPool, work: Callable[[Device, AgentClient], None]) -> None:
        """Run ``work`` on the machines in parallel, on the devices of one machine in turn.

        Emulated devices would disturb each other. Devices that failed are left out.
        """

        def in_turn(machine: str) -> None:
            for name in machines[machine]:
                if self.profile.devices[name].error is None:
                    work(pool.devices[name], pool.agents[name])

        able = [device.name for device in self._chosen if device.name in pool.agents]
        machines = machines_of({name: self.profile.devices[name] for name in able})
        in_parallel(machines, in_turn)

    def _previous(self, fresh: bool) -> Profile:
        """Return a profile with the earlier measurements that still hold."""
        chosen = {device.name for device in self._chosen}
        again = chosen if fresh else set()
        names = {device.name for device in self._fleet.devices}
        before = load_profile(self._path) if self._path.exists() and again != names else None
        now = time.time()
        start = Profile(records.SCHEMA, planner.__version__, now, {}, (), (), {}, self._request.steps_planned)
        return reuse.carry_over(before, start, self._fleet, chosen, again)

    def _note(self, name: str, **changes: Any) -> None:
        """Change one device's part of the profile and write the file."""
        with self._lock:
            if not self._stopped:
                self.profile.devices[name] = self.profile.devices[name]._replace(**changes)
                save(self.profile, self._path)

    def _fail(self, name: str, reason: str, **changes: Any) -> None:
        if not self._stopped:
            self._note(name, **changes or {"error": reason})
            self._on_progress(name, f"failed: {reason}", None)

    # -- one device ------------------------------------------------------------------------------

    def _device(self, device: Device, agent: AgentClient) -> None:
        try:
            self._facts(device, agent)
            for model in self._request.models:
                self._model(device, agent, model)
        except PlannerError as error:
            self._fail(device.name, str(error))
            return
        known = self.profile.devices[device.name]
        if known.steps:
            self._on_progress(device.name, "done", 1.0)
        else:
            self._fail(device.name, "; ".join(f"{model}: {reason}" for model, reason in known.failures.items()))

    def _facts(self, device: Device, agent: AgentClient) -> None:
        self._on_progress(device.name, "facts", None)
        facts = decode(records.Facts, agent.call(CollectFacts(), ANSWER_S), f"{device.name}.facts")
        before = self.profile.devices[device.name]
        if before.facts is None or reuse.identity(before.facts) != reuse.identity(facts):
            self._forget_links(device.name)
            self._note(device.name, idle=None, steps=(), took_s={}, failures={})
        self._note(device.name, facts=facts)
        if self.profile.devices[device.name].idle is None:
            self._on_progress(device.name, "idle power", None)
            began = time.monotonic()
            answer = agent.call(MeasureIdle(self._request.idle_s), ANSWER_S)
            idle = decode(records.Window, answer, f"{device.name}.idle")
            took = {**self.profile.devices[device.name].took_s, "idle": time.monotonic() - began}
            self._note(device.name, idle=idle, took_s=took)

    def _forget_links(self, name: str) -> None:
        """Drop the links of a name that another machine has now."""
        with self._lock:
            links = tuple(link for link in self.profile.links if name not in (link.source, link.target))
            self.profile = self.profile._replace(links=links, incasts=())

    def _model(self, device: Device, agent: AgentClient, model: str) -> None:
        """Time one model. Its failure, for want of memory say, leaves other models as they are."""
        name = device.name
        before = self.profile.devices[name]
        failures = {other: reason for other, reason in before.failures.items() if other != model}
        self._note(name, failures=failures)
        try:
            framework = self._framework(name)
        except PlanError as error:
            self._fail(name, f"{model}: {error}", failures={**failures, model: str(error)})
            return
        try:
            self._steps(device, agent, model, framework)
        except AgentError as error:
            reason = what_was_said(name, error)
            others = self._split(name, model, framework)[1]
            rest_s = {part: took_s for part, took_s in before.took_s.items() if part != timing_of(model, framework)}
            self._fail(name, f"{model}: {reason}", steps=others, took_s=rest_s, failures={**failures, model: reason})

    def _framework(self, name: str) -> str:
        facts = self.profile.devices[name].facts
        assert facts is not None, "facts are collected before models are timed"
        return self._request.framework_on(facts)

    def _steps(self, device: Device, agent: AgentClient, model: str, framework: str) -> None:
        before = self.profile.devices[device.name]
        earlier, others = self._split(device.name, model, framework)
        fingerprint, request = self._timer.fingerprints[model], self._request
        if any(reuse.timing_holds(steps, fingerprint, request, device, before.facts) for steps in earlier):
            self._on_progress(device.name, f"{model}: measured before", 1.0)
            return
        began = time.monotonic()
        measured = self._timer.whole(device, agent, model, framework)
        took = {**before.took_s, timing_of(model, framework): time.monotonic() - began}
        self._note(device.name, steps=(*others, measured), took_s=took)

    def _repeat_models(self, device: Device, agent: AgentClient) -> None:
        """Time models again, minutes later, which shows what ran beside them the first time."""
        for timed in self.profile.devices[device.name].steps:
            same = timed.fingerprint == self._timer.fingerprints.get(timed.model)
            if same and timed.batch == self._request.batch and repeats.unchecked(timed):
                try:
                    self._check(device, agent, timed)
                except PlannerError as error:
                    reason = what_was_said(device.name, error)
                    self._on_progress(device.name, f"{timed.model}: timed once only: {reason}", None)
        self._on_progress(device.name, "done", 1.0)

    def _check(self, device: Device, agent: AgentClient, timed: records.StepProfile) -> None:
        known, part = self.profile.devices[device.name], timing_of(timed.model, timed.framework)
        before_s = known.took_s.get(part, 0.0)
        began = time.monotonic() - before_s
        checked = self._timer.checked(device, agent, timed, before_s)
        took = {**known.took_s, part: time.monotonic() - began}
        self._note(device.name, steps=tuple(checked if each is timed else each for each in known.steps), took_s=took)

    def _split(self, name: str, model: str, framework: str) -> tuple[Timings, Timings]:
        """Split a device's timings into those of this model and batch size, and others."""
        key = (model, framework, self._request.batch)
        steps = self.profile.devices[name].steps
        same = tuple(s for s in steps if (s.model, s.framework, s.batch) == key)
        return same, tuple(s for s in steps if s not in same)

    # -- links -----------------------------------------------------------------------------------

    def _links(self, pool: AgentPool) -> None:
        """Measure the missing links between the devices that have an address."""
        errors: dict[str, str] = {}
        able = self._working(pool)
        if self._outstanding(able).probes:
            began = time.monotonic()
            addresses, failed = try_addresses({name: pool.devices[name] for name in able}, able)
            for name, error in failed.items():
                self._fail(name, str(error))
            reached = {name: able[name] for name in addresses}
            only = self._outstanding(reached)
            errors = measure_links(
                reached, addresses, self._sizes(), self._on_link, self._add_link, only, self._request.links
            )
            self._took_for_links(began)
        for what, reason in errors.items():
            self._on_progress("links", f"{what}: {reason}", None)
        missing = self._outstanding(self.profile.devices).names
        known = {**self.profile.link_errors, **errors}
        self.profile = self.profile._replace(link_errors={what: known[what] for what in missing if what in known})
        save(self.profile, self._path)

    def _repeat_links(self, pool: AgentPool) -> None:
        """Probe links again, after the models were timed again."""
        able = self._working(pool)
        once = [link for link in self.profile.links if unchecked(link) and {link.source, link.target} <= set(able)]
        if once:
            began = time.monotonic()
            addresses, failed = try_addresses({name: pool.devices[name] for name in able}, able)
            links = [link for link in once if {link.source, link.target} <= set(addresses)]
            errors = repeat_links(
                able, addresses, self._sizes(), links, self._on_link, self._add_link, self._request.links
            )
            for what, reason in {**failed, **errors}.items():
                self._on_progress("links", f"{what}: probed once only: {reason}", None)
            self._took_for_links(began)
            save(self.profile, self._path)

    def _working(self, pool: AgentPool) -> dict[str, AgentClient]:
        return {name: agent for name, agent in pool.agents.items() if self.profile.devices[name].error is None}

    def _sizes(self) -> list[int]:
        """Return the message sizes to measure: the bytes of each model's weights."""
        return sorted({steps.parameter_bytes for known in self.profile.devices.values() for steps in known.steps})

    def _on_link(self, what: str, share: float | None) -> None:
        self._on_progress("links", what, share)

    def _took_for_links(self, began: float) -> None:
        self.profile.took_s["links"] = self.profile.took_s.get("links", 0.0) + time.monotonic() - began

    def _outstanding(self, names: Iterable[str]) -> Outstanding:
        have = {(link.source, link.target) for link in self.profile.links}
        incasts = {(incast.host, incast.direction) for incast in self.profile.incasts}
        return Outstanding.among(names, have, incasts)

    def _add_link(self, result: records.LinkProfile | records.IncastProfile) -> None:
        now = time.time()
        with self._lock:
            if isinstance(result, records.LinkProfile):
                ends = (result.source, result.target)
                others = (link for link in self.profile.links if (link.source, link.target) != ends)
                dated = result._replace(measured_s=result.measured_s or now)  # the rate is of the first probe
                self.profile = self.profile._replace(links=(*others, dated))
            else:
                dated_incast = result._replace(measured_s=now)
                self.profile = self.profile._replace(incasts=(*self.profile.incasts, dated_incast))
            save(self.profile, self._path)
