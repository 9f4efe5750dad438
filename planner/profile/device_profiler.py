"""A device profiler collects a device's facts and idle watts, and times models on it."""

import contextlib
import time
from collections.abc import Iterable, Iterator

from backends.protocol.orders import CollectFacts, MeasureIdle, StartFramework, WatchStream
from planner.agents.call import Call
from planner.agents.client import AgentClient
from planner.check.findings import without_device_name
from planner.check.run import FRAMEWORK_S
from planner.errors import AgentError, PlanError, PlannerError
from planner.fleet.device import Device
from planner.profile import reuse
from planner.profile.contention import contention, window_s
from planner.profile.file import DeviceProfile, timing_of
from planner.profile.recorder import ProfileRecorder
from planner.profile.request import ProfileRequest
from planner.profile.step_timing import SILENCE_S, StepTimer, with_more_steps
from planner.units import seconds
from profilers.records.device import Facts
from profilers.records.readings import StreamRate, Window
from profilers.records.steps import Repeat, StepProfile
from profilers.stats import mean

#: Seconds of idling that are enough for counters, where no sensor tells watts.
COUNTED_S = 1.0
#: Seconds for which arriving samples are counted.
WATCHED_S = 10.0
#: Seconds without an answer after which a device counts as hung.
ANSWER_S = 60.0


class DeviceProfiler:
    """Measures what the profile lacks of single devices.

    ``identify``, ``idle`` and ``watch`` raise PlannerError where the device fails.
    """

    def __init__(self, request: ProfileRequest, timer: StepTimer, recorder: ProfileRecorder) -> None:
        self._request = request
        self._timer = timer
        self._recorder = recorder
        self._show = recorder.on_progress

    def identify(self, device: Device, agent: AgentClient) -> None:
        """Collect facts, by which earlier measurements may not hold."""
        name = device.name
        self._show(name, "facts", None)
        facts: Facts = agent.call(CollectFacts(), ANSWER_S)
        before = self._known(device).facts
        if before is None or reuse.identity(before) != reuse.identity(facts):
            self._recorder.change(lambda profile: profile.without_links(name))
            self._recorder.note(name, idle=None, steps=(), took_s={}, failures={})
        self._recorder.note(name, facts=facts)

    def idle(self, device: Device, agent: AgentClient) -> None:
        """Measure counters and watts while no device does anything."""
        if self._known(device).idle is not None:
            return
        self._show(device.name, "idle power", None)
        began = time.monotonic()
        lasting_s = self._request.idle_s if self._facts_of(device).sensors else min(self._request.idle_s, COUNTED_S)
        idle: Window = agent.call(MeasureIdle(lasting_s), ANSWER_S)
        took = {**self._known(device).took_s, "idle": time.monotonic() - began}
        self._recorder.note(device.name, idle=idle, took_s=took)

    def start_framework(self, device: Device, agent: AgentClient) -> None:
        """Import the framework of models that are to be timed: only the first time takes long.

        What fails here fails again, and is noted, where it is needed.
        """
        with contextlib.suppress(PlannerError):
            if any(not self._is_timed(device, model) for model in self._request.models):
                self._show(device.name, "importing", None)
                agent.call(StartFramework(self._framework(device)), FRAMEWORK_S)

    def watch(self, device: Device, agent: AgentClient) -> None:
        """Count what arrives in streams. A device without the precision that is asked for fails."""
        self._request.check_precision(self._facts_of(device))
        self._stream(device, agent)

    def begin(self, device: Device, agent: AgentClient, model: str) -> Call | None:
        """Let a device build a model; None where it is timed already, or cannot be."""
        try:
            framework = self._framework(device)
        except PlanError as error:
            self._fail_model(device, model, str(error))
            return None
        if self._is_timed(device, model):
            self._show(device.name, f"{model}: measured before", None)
            self._recorder.note(device.name, failures=self._other_failures(device, model))
            return None
        with self._failing(device, model):
            agent.call(StartFramework(framework), FRAMEWORK_S)
            return self._timer.begin(device, agent, model, framework)
        return None

    def measure(self, device: Device, call: Call, model: str) -> None:
        """Time a model that the device has built. The call is that of ``begin``."""
        began = time.monotonic()
        with self._failing(device, model):
            measured = self._timer.whole(device, call, model)
            known, part = self._known(device), timing_of(model, measured.framework)
            self._recorder.note(
                device.name,
                steps=(*self._other_steps(device, model), measured),
                took_s={**known.took_s, part: time.monotonic() - began},
                failures=self._other_failures(device, model),
            )
            self._show(device.name, f"{model} {seconds(_step_s(measured))} a step", 1.0)

    def leave(self, device: Device, call: Call, model: str, reason: str) -> None:
        """Do not time a model that the device has built."""
        with self._failing(device, model):
            call.stop()
        self._recorder.note(device.name, failures={**self._other_failures(device, model), model: reason})

    def conclude(self, device: Device) -> None:
        """A device on which no model can be timed has failed."""
        known = self._known(device)
        if known.error is None and not known.steps and self._request.models:
            reasons = "; ".join(f"{model}: {reason}" for model, reason in known.failures.items())
            self._recorder.fail(device.name, reasons)

    def timed(self, device: Device, model: str) -> StepProfile | None:
        """The timing of a model that this request asks for, if there is one."""
        return next((each for each in self._current(device) if each.model == model), None)

    def begin_again(self, device: Device, agent: AgentClient, model: str, lasting_s: float) -> Call:
        """Begin steps of a timed model that count from the word on. Raises RemoteError."""
        timed = self.timed(device, model)
        assert timed is not None, "it was timed alone"
        return self._timer.again(device, agent, timed, lasting_s, waits=True)

    def time_more(self, device: Device, agent: AgentClient, model: str) -> None:
        """Time more steps of a model; where that fails it stays as it was."""
        timed = self.timed(device, model)
        if timed is None:
            return
        self._show(device.name, f"{model}: more steps", None)
        began = time.monotonic()
        try:
            made = self._timer.again(device, agent, timed, window_s([_step_s(timed)])).result(SILENCE_S)
        except PlannerError as error:
            self._show(device.name, f"{model}: no more steps: {without_device_name(device.name, error)}", None)
            return
        self._note_timing(device, timed, with_more_steps(timed, made), time.monotonic() - began)

    def note_contention(self, device: Device, model: str, names: Iterable[str], made: Repeat, took_s: float) -> None:
        """Record how a device did while all of these computed. took_s: its part of the seconds."""
        timed = self.timed(device, model)
        assert timed is not None, "it was timed alone"
        by = timed._replace(contention=contention(names, timed.gradient_s, made.gradient_s))
        self._note_timing(device, timed, by, took_s)

    def _note_timing(self, device: Device, timed: StepProfile, by: StepProfile, took_s: float) -> None:
        """Put a timing in the place of another. took_s: seconds that this took."""
        known, part = self._known(device), timing_of(timed.model, timed.framework)
        took = {**known.took_s, part: known.took_s.get(part, 0.0) + took_s}
        steps = tuple(by if each is timed else each for each in known.steps)
        self._recorder.note(device.name, steps=steps, took_s=took)

    def _current(self, device: Device) -> list[StepProfile]:
        """The timings of what this request asks for; none without a framework for it."""
        known = self._known(device)
        if not self._request.models:
            return []
        try:
            asked = self._framework(device), self._request.compute, self._request.batch
        except PlanError:
            return []
        return [
            timed
            for timed in known.steps
            if (timed.framework, timed.setup.compute, timed.planned_batch) == asked
            and timed.setup.fingerprint == self._timer.fingerprints.get(timed.model)
        ]

    def _known(self, device: Device) -> DeviceProfile:
        return self._recorder.profile.devices[device.name]

    def _facts_of(self, device: Device) -> Facts:
        facts = self._known(device).facts
        assert facts is not None, "facts are collected first"
        return facts

    def _stream(self, device: Device, agent: AgentClient) -> None:
        """Count the samples that arrive, if this was asked for. Where none do, the rest goes on."""
        name, spec = device.name, self._request.stream
        if spec is None:
            return
        self._show(name, f"samples of {spec.named(name)}", None)
        others = {key: each for key, each in self._known(device).streams.items() if key != spec.named(name)}
        began = time.monotonic()
        try:
            limit_s = spec.patience_s + WATCHED_S + ANSWER_S
            found: StreamRate = agent.call(WatchStream(spec.text, name, WATCHED_S), limit_s)
        except AgentError as error:
            what, reason = f"--stream {spec.text}", without_device_name(name, error)
            failed = {**self._known(device).failures, what: reason}
            self._recorder.fail(name, f"{what}: {reason}", streams=others, failures=failed)
            return
        took = {**self._known(device).took_s, "stream": time.monotonic() - began}
        self._recorder.note(name, streams={**others, spec.named(name): found}, took_s=took)

    @contextlib.contextmanager
    def _failing(self, device: Device, model: str) -> Iterator[None]:
        """A model that fails, for want of memory say, leaves other models as they are."""
        try:
            yield
        except AgentError as error:
            took, part = self._known(device).took_s, timing_of(model, self._framework(device))
            self._recorder.note(
                device.name,
                steps=self._other_steps(device, model),
                took_s={other: took_s for other, took_s in took.items() if other != part},
            )
            self._fail_model(device, model, without_device_name(device.name, error))
        except PlannerError as error:
            self._recorder.fail(device.name, str(error))

    def _fail_model(self, device: Device, model: str, reason: str) -> None:
        failures = {**self._other_failures(device, model), model: reason}
        self._recorder.fail(device.name, f"{model}: {reason}", failures=failures)

    def _other_failures(self, device: Device, model: str) -> dict[str, str]:
        return {other: reason for other, reason in self._known(device).failures.items() if other != model}

    def _other_steps(self, device: Device, model: str) -> tuple[StepProfile, ...]:
        """All timings but those of the model as it is asked for."""
        same = self._timings(device, model)
        return tuple(steps for steps in self._known(device).steps if steps not in same)

    def _framework(self, device: Device) -> str:
        """The framework that the device trains with. Raises PlanError where it has none."""
        return self._request.framework_on(self._facts_of(device))

    def _timings(self, device: Device, model: str) -> list[StepProfile]:
        """Timings of the model as it is asked for, also those that hold no more."""
        key = model, self._framework(device), self._request.batch
        known = self._known(device).steps
        return [steps for steps in known if (steps.model, steps.framework, steps.planned_batch) == key]

    def _is_timed(self, device: Device, model: str) -> bool:
        facts, fingerprint = self._facts_of(device), self._timer.fingerprints[model]
        timings = self._timings(device, model)
        return any(reuse.timing_holds(steps, fingerprint, self._request, device, facts) for steps in timings)


def _step_s(timed: StepProfile) -> float:
    """Mean seconds of a step of a device that trains alone."""
    return mean(timed.gradient_s.values) + mean(timed.update_s.values)
