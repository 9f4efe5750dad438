"""Timing a model on a device, and telling how far that is."""

import threading
import time
from pathlib import Path
from typing import NamedTuple

from backends import models
from backends.models.user_source import source_files
from backends.protocol.events import StepTimed
from backends.protocol.orders import RepeatSteps, ReplicaSpec, TimeSteps
from planner.agents.client import AgentClient
from planner.console import OnProgress
from planner.fleet.device import Device
from planner.json_records import decode
from planner.profile import repeats
from planner.profile.request import ProfileRequest
from profilers import records, steptime

#: Seconds a device may spend on a model, as a share of the planned training; the rest of a hundredth is for a third
#: visit, which takes the fewest steps.
SHARE = 0.007


class TimeBudget:
    """The time for each model on each of ``devices`` devices, which are timed at once. Thread-safe.

    No cluster makes more steps a second than its devices do together without a network; so a device may be timed
    for as long as SHARE of ``steps`` would take all of them, less ``common_s``, what each model has to bear of that
    which is measured for all. A device that is slow beside the others thus gets few steps: it also contributes few.
    """

    def __init__(self, steps: int, devices: int, common_s: float) -> None:
        self._steps = SHARE * steps
        self._devices = devices
        self._common_s = common_s
        self._rates: dict[str, dict[str, float]] = {}
        self._lock = threading.Lock()

    def note(self, device: str, model: str, step_s: float) -> None:
        """What a step of a model takes a device, as far as it is known by now."""
        with self._lock:
            self._rates.setdefault(model, {})[device] = 1 / max(step_s, 1e-9)

    def spent(self, model: str, needed_s: float) -> bool:
        """Whether a device should come to an end that will have needed so long for a model at the least."""
        with self._lock:
            known = list(self._rates.get(model, {}).values())
        # One that has not been heard of may be as fast as the fastest.
        rate = sum(known) + (self._devices - len(known)) * max(known, default=0.0)
        return (needed_s + self._common_s) * rate > self._steps


def place_model(agent: AgentClient, model: str) -> str:
    """A user's model file goes to the device with those that it imports; a known model's name stays as it is."""
    if not models.is_user_model(model):
        return model
    path, _, function = model.rpartition(":")
    folder = f"model-{models.fingerprint(model)}"
    there = [
        agent.store(f"{folder}/{source.name}", source.content, str(Path(path).parent / source.name))
        for source in source_files(model)
    ]
    return f"{there[0]}:{function}"


class StepTimer(NamedTuple):
    """What a step of a model takes a device, for as long as the planned training allows.

    fingerprints: of the models; sharing: how many devices take turns on the machine of each, by name.
    """

    wanted: ProfileRequest
    fingerprints: dict[str, str]
    allowance: TimeBudget
    sharing: dict[str, int]
    on_progress: OnProgress

    def whole(
        self, device: Device, agent: AgentClient, model: str, framework: str, spent_s: float = 0.0
    ) -> records.StepProfile:
        """All that a prediction needs; ``spent_s`` went into it before. Raises RemoteError."""
        began = time.monotonic() - spent_s
        call = agent.start(
            TimeSteps(self._replica(device, agent, model, framework), self.wanted.batch, self.wanted.protocol)
        )

        def progress(event: StepTimed) -> None:
            self._tell(device.name, model, event)
            self.allowance.note(device.name, model, event.step_s)
            needed_s = time.monotonic() - began + event.rest_s
            if self.allowance.spent(model, needed_s * self.sharing[device.name]):
                call.go()

        measured = decode(records.StepProfile, call.result(600.0, progress), f"{device.name}.steps")
        planned = measured._replace(steps_planned=self.wanted.steps_planned)
        return repeats.begun(planned._replace(model=model, fingerprint=self.fingerprints[model]))

    def checked(
        self, device: Device, agent: AgentClient, timed: records.StepProfile, spent_s: float
    ) -> records.StepProfile:
        """What was timed once, for ``spent_s``, after a second visit, and where that does not agree after a third.

        Raises RemoteError.
        """
        began = time.monotonic() - spent_s
        call = agent.start(RepeatSteps(self._replica(device, agent, timed.model, timed.framework), self.wanted.batch))
        answer = call.result(600.0, lambda event: self._tell(device.name, timed.model, event))
        visit = decode(records.Repeat, answer, f"{device.name}.steps_again")
        made = repeats.checked(timed, visit)
        if repeats.agree(made):
            return made
        spent_s = time.monotonic() - began
        return repeats.settled(made, visit, self.whole(device, agent, timed.model, timed.framework, spent_s))

    def _replica(self, device: Device, agent: AgentClient, model: str, framework: str) -> ReplicaSpec:
        return ReplicaSpec(
            framework=framework,
            model=place_model(agent, model),
            input_shape=self.wanted.input_shape,
            classes=self.wanted.classes,
            slowdown=device.slowdown,
        )

    def _tell(self, name: str, model: str, event: StepTimed) -> None:
        share = None
        if event.stage == "timed":
            known = steptime.PRECISION / max(event.precision, steptime.PRECISION)
            share = max(event.steps / steptime.TIMED_LIMIT, known)
        self.on_progress(name, f"{model}: {event.stage} step {event.steps}", share)
