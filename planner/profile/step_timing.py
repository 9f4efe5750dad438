"""A step timer times the training steps of a model on a device.

Its budget keeps profiling below a hundredth of the training that it plans.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from backends.network.framing import SERVER
from backends.protocol.events import StepTimed
from backends.protocol.member_specs import ReplicaSpec
from backends.protocol.orders import LoopbackEnds, RepeatSteps, TimeSteps
from planner.agents.certificates import Authority
from planner.agents.client import AgentClient
from planner.console import OnProgress
from planner.errors import RemoteError
from planner.fleet.device import Device
from planner.jobs.shipping import ship_job, ship_model
from planner.profile import repeats
from planner.profile.crowd import Crowd
from planner.profile.request import ProfileRequest
from profilers import steptime
from profilers.records.steps import Repeat, StepProfile

#: Seconds without an event after which a device counts as hung.
SILENCE_S = 600.0
#: Share of the planned training that a device may spend on timing a model.
#: The rest of the hundredth is for a third repeat, which takes the fewest steps.
BUDGET_SHARE = 0.007


class TimeBudget:
    """The time that each of ``devices`` devices may spend on each model. Thread-safe.

    It is BUDGET_SHARE of the time of ``steps`` on all devices without a network, less ``common_s``,
    a model's part of what is measured for all models. So a slow device among fast ones gets few.
    """

    def __init__(self, steps: int, devices: int, common_s: float) -> None:
        self._steps = BUDGET_SHARE * steps
        self._devices = devices
        self._common_s = common_s
        self._rates: dict[str, dict[str, float]] = {}
        self._lock = threading.Lock()

    def note(self, device: str, model: str, step_s: float) -> None:
        """Take the latest estimate of a model's step on a device."""
        with self._lock:
            self._rates.setdefault(model, {})[device] = 1 / max(step_s, 1e-9)

    def spent(self, model: str, needed_s: float) -> bool:
        """Whether a device should stop timing a model, which needs ``needed_s`` until it ends."""
        with self._lock:
            known = list(self._rates.get(model, {}).values())
        # A device without an estimate yet may be as fast as the fastest.
        rate = sum(known) + (self._devices - len(known)) * max(known, default=0.0)
        return (needed_s + self._common_s) * rate > self._steps


class StepTimer(NamedTuple):
    """Times models on the devices of a fleet.

    fingerprints: of each model.
    sharing: how many devices take turns with a device, itself included.
    """

    request: ProfileRequest
    fingerprints: dict[str, str]
    budget: TimeBudget
    sharing: Callable[[str], int]
    on_progress: OnProgress

    def whole(
        self, device: Device, agent: AgentClient, model: str, framework: str, spent_s: float = 0.0
    ) -> StepProfile:
        """Measure everything that a prediction needs of a model. Raises RemoteError.

        spent_s: seconds that went into its timing before.
        """
        began = time.monotonic() - spent_s
        replica = self._replica(device, agent, model, framework)
        authority = Authority()
        ends = LoopbackEnds(authority.identity(SERVER), authority.identity(device.name))
        call = agent.start(TimeSteps(replica, self.request.batch, self.request.protocol, ends))

        def progress(event: StepTimed) -> None:
            self._show(device.name, model, event)
            self.budget.note(device.name, model, event.step_s)
            needed_s = time.monotonic() - began + event.rest_s
            if self.budget.spent(model, needed_s * self.sharing(device.name)):
                call.go()

        measured: StepProfile = call.result(SILENCE_S, progress)
        planned = measured._replace(steps_planned=self.request.steps_planned)
        return repeats.begun(planned._replace(model=model, fingerprint=self.fingerprints[model]))

    def checked(self, device: Device, agent: AgentClient, timed: StepProfile, spent_s: float) -> StepProfile:
        """A timing after a second repeat, and after a third where these two do not agree.

        spent_s: seconds that the first one took. Raises RemoteError.
        """
        began = time.monotonic() - spent_s
        second = self._repeated(device, agent, timed)
        both = repeats.checked(timed, second)
        if repeats.agree(both):
            return both
        spent_s = time.monotonic() - began
        third = self.whole(device, agent, timed.model, timed.framework, spent_s)
        return repeats.settled(both, second, third)

    def beside(self, device: Device, agent: AgentClient, timed: StepProfile, crowd: Crowd) -> Repeat:
        """Steps that are made while all of a crowd make some. Raises RemoteError.

        The device makes steps until all others are timed, too.
        """
        try:
            all_step = False
            while not all_step:
                all_step, found = crowd.all_step, self._repeated(device, agent, timed, crowd)
        finally:
            crowd.end(device.name)
        with suppress(RemoteError):
            while not crowd.complete:
                self._repeated(device, agent, timed, crowd)
        return found

    def _repeated(self, device: Device, agent: AgentClient, timed: StepProfile, crowd: Crowd | None = None) -> Repeat:
        def progress(event: StepTimed) -> None:
            self._show(device.name, timed.model, event)
            if crowd is not None:
                crowd.steps(device.name)

        call = agent.start(RepeatSteps(self._replica(device, agent, timed.model, timed.framework), timed.batch))
        found: Repeat = call.result(SILENCE_S, progress)
        return found

    def _replica(self, device: Device, agent: AgentClient, model: str, framework: str) -> ReplicaSpec:
        request, own = self.request, self.request.job
        replica = ReplicaSpec(
            framework,
            model,
            slowdown=device.slowdown,
            micro_batch=request.micro_batch,
            precision=request.precision,
        )
        if own is not None and own.text == model:
            return replica._replace(job=ship_job(agent, own, device))
        return replica._replace(
            model=ship_model(agent, model), input_shape=request.input_shape, classes=request.classes
        )

    def _show(self, name: str, model: str, event: StepTimed) -> None:
        share = None
        if event.stage == "timed":
            precise = steptime.PRECISION / max(event.precision, steptime.PRECISION)
            share = max(event.steps / steptime.TIMED_ENOUGH, precise)
        what = "parts of a step" if event.stage == "parts" else f"{event.stage} step {event.steps}"
        self.on_progress(name, f"{model}: {what}", share)
