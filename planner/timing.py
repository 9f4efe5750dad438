"""Timing a model on a device, and telling how far that is."""

import time
from typing import Any, NamedTuple

from planner import visits
from planner.agents import Agent, Event
from planner.allowance import Allowance
from planner.decode import decode
from planner.fleet import Device
from planner.place import place_model
from planner.render import OnProgress
from planner.wanted import Wanted
from profilers import records, steptime


class Timer(NamedTuple):
    """What a step of a model takes a device, for as long as the planned training allows.

    fingerprints: of the models; sharing: how many devices take turns on the machine of each, by name.
    """

    wanted: Wanted
    fingerprints: dict[str, str]
    allowance: Allowance
    sharing: dict[str, int]
    on_progress: OnProgress

    def whole(
        self, device: Device, agent: Agent, model: str, framework: str, spent_s: float = 0.0
    ) -> records.StepProfile:
        """All that a prediction needs; ``spent_s`` went into it before. Raises RemoteError."""
        began = time.monotonic() - spent_s
        call = agent.start("steps", protocol=self.wanted.protocol, **self._of(device, agent, model, framework))

        def progress(event: Event) -> None:
            self._tell(device.name, model, event)
            self.allowance.note(device.name, model, event["step_s"])
            needed_s = time.monotonic() - began + event["rest_s"]
            if self.allowance.spent(model, needed_s * self.sharing[device.name]):
                call.go()

        measured = decode(records.StepProfile, call.result(600.0, progress), f"{device.name}.steps")
        planned = measured._replace(steps_planned=self.wanted.steps_planned)
        return visits.begun(planned._replace(model=model, fingerprint=self.fingerprints[model]))

    def checked(self, device: Device, agent: Agent, timed: records.StepProfile, spent_s: float) -> records.StepProfile:
        """What was timed once, for ``spent_s``, after a second visit, and where that does not agree after a third.

        Raises RemoteError.
        """
        began = time.monotonic() - spent_s
        call = agent.start("steps_again", **self._of(device, agent, timed.model, timed.framework))
        answer = call.result(600.0, lambda event: self._tell(device.name, timed.model, event))
        visit = decode(records.Visit, answer, f"{device.name}.steps_again")
        made = visits.checked(timed, visit)
        if visits.agree(made):
            return made
        spent_s = time.monotonic() - began
        return visits.settled(made, visit, self.whole(device, agent, timed.model, timed.framework, spent_s))

    def _of(self, device: Device, agent: Agent, model: str, framework: str) -> dict[str, Any]:
        return {
            "model": place_model(agent, model),
            "framework_name": framework,
            "batch": self.wanted.batch,
            "slowdown": device.slowdown,
            "input_shape": self.wanted.input_shape,
            "classes": self.wanted.classes,
        }

    def _tell(self, name: str, model: str, event: Event) -> None:
        share = None
        if event["stage"] == "timed":
            known = steptime.PRECISION / max(event["precision"], steptime.PRECISION)
            share = max(event["steps"] / steptime.TIMED_LIMIT, known)
        self.on_progress(name, f"{model}: {event['stage']} step {event['steps']}", share)
