"""A step timer times the training steps of a model on a device, within a budget."""

import time
from typing import NamedTuple

from backends.protocol.events import StepTimed
from backends.protocol.orders import RepeatSteps, ReplicaSpec, TimeSteps
from planner.agents.client import AgentClient
from planner.console import OnProgress
from planner.fleet.device import Device
from planner.json_records import decode
from planner.profile import repeats
from planner.profile.model_shipping import ship_model
from planner.profile.request import ProfileRequest
from planner.profile.time_budget import TimeBudget
from profilers import records, steptime

#: Seconds without an event after which a device counts as hung.
SILENCE_S = 600.0


class StepTimer(NamedTuple):
    """Times models on the devices of a fleet.

    fingerprints: of each model.
    sharing: by device, how many devices take turns on its machine.
    """

    request: ProfileRequest
    fingerprints: dict[str, str]
    budget: TimeBudget
    sharing: dict[str, int]
    on_progress: OnProgress

    def whole(
        self, device: Device, agent: AgentClient, model: str, framework: str, spent_s: float = 0.0
    ) -> records.StepProfile:
        """Measure everything that a prediction needs of a model.

        spent_s: seconds that went into its timing before.
        Raises RemoteError.
        """
        began = time.monotonic() - spent_s
        replica = self._replica(device, agent, model, framework)
        call = agent.start(TimeSteps(replica, self.request.batch, self.request.protocol))

        def progress(event: StepTimed) -> None:
            self._show(device.name, model, event)
            self.budget.note(device.name, model, event.step_s)
            needed_s = time.monotonic() - began + event.rest_s
            if self.budget.spent(model, needed_s * self.sharing[device.name]):
                call.go()

        measured = decode(records.StepProfile, call.result(SILENCE_S, progress), f"{device.name}.steps")
        planned = measured._replace(steps_planned=self.request.steps_planned)
        return repeats.begun(planned._replace(model=model, fingerprint=self.fingerprints[model]))

    def checked(
        self, device: Device, agent: AgentClient, timed: records.StepProfile, spent_s: float
    ) -> records.StepProfile:
        """Return a timing after a second repeat, and after a third where these two do not agree.

        spent_s: seconds that the first one took.
        Raises RemoteError.
        """
        began = time.monotonic() - spent_s
        replica = self._replica(device, agent, timed.model, timed.framework)
        call = agent.start(RepeatSteps(replica, self.request.batch))
        answer = call.result(SILENCE_S, lambda event: self._show(device.name, timed.model, event))
        second = decode(records.Repeat, answer, f"{device.name}.steps_again")
        both = repeats.checked(timed, second)
        if repeats.agree(both):
            return both
        spent_s = time.monotonic() - began
        third = self.whole(device, agent, timed.model, timed.framework, spent_s)
        return repeats.settled(both, second, third)

    def _replica(self, device: Device, agent: AgentClient, model: str, framework: str) -> ReplicaSpec:
        return ReplicaSpec(
            framework=framework,
            model=ship_model(agent, model),
            input_shape=self.request.input_shape,
            classes=self.request.classes,
            slowdown=device.slowdown,
        )

    def _show(self, name: str, model: str, event: StepTimed) -> None:
        share = None
        if event.stage == "timed":
            precise = steptime.PRECISION / max(event.precision, steptime.PRECISION)
            share = max(event.steps / steptime.TIMED_LIMIT, precise)
        self.on_progress(name, f"{model}: {event.stage} step {event.steps}", share)
