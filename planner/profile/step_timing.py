"""A step timer times the training steps of a model on a device."""

from typing import NamedTuple

from backends.network.framing import SERVER
from backends.protocol.events import StepTimed
from backends.protocol.member_specs import ReplicaSpec
from backends.protocol.orders import LoopbackEnds, RepeatSteps, TimeSteps
from planner.agents.call import Call
from planner.agents.certificates import Authority
from planner.agents.client import AgentClient
from planner.console import OnProgress
from planner.fleet.device import Device
from planner.jobs.shipping import ship_code
from planner.profile.request import ProfileRequest
from profilers.records.readings import Samples
from profilers.records.steps import Repeat, StepProfile

#: Seconds without an event after which a device counts as hung.
SILENCE_S = 600.0


def await_ready(call: Call, silence_s: float) -> None:
    """Wait until the device has all ready, has failed, or is silent, which its result shows."""
    event = call.event(silence_s)
    while event is not None and not (isinstance(event, StepTimed) and event.stage == "ready"):
        event = call.event(silence_s)


class StepTimer(NamedTuple):
    """Times models on the devices of a fleet. fingerprints: of each model."""

    request: ProfileRequest
    fingerprints: dict[str, str]
    on_progress: OnProgress

    def begin(self, device: Device, agent: AgentClient, model: str, framework: str) -> Call:
        """Let a device build a model, and wait until it is told to time it. Raises RemoteError."""
        self.on_progress(device.name, f"{model}: building", None)
        replica = self._replica(device, agent, model, framework)
        authority = Authority()
        ends = LoopbackEnds(authority.identity(SERVER), authority.identity(device.name))
        return agent.start(TimeSteps(replica, self.request.batch, self.request.protocol, ends))

    def whole(self, device: Device, call: Call, model: str) -> StepProfile:
        """Measure all that a prediction needs of a model that is built. Raises RemoteError."""
        if not call.ended:
            call.go()

        def progress(event: StepTimed) -> None:
            what = "parts of a step" if event.stage == "parts" else f"{event.stage} step {event.steps}"
            self.on_progress(device.name, f"{model}: {what}", None)

        measured: StepProfile = call.result(SILENCE_S, progress)
        return measured._replace(model=model, setup=measured.setup._replace(fingerprint=self.fingerprints[model]))

    def again(
        self, device: Device, agent: AgentClient, timed: StepProfile, seconds: float, waits: bool = False
    ) -> Call:
        """Begin to time a model once more; the result is a ``Repeat``. Raises RemoteError.

        waits: whether they count from when the call is told to go on.
        """
        replica = self._replica(device, agent, timed.model, timed.framework)
        return agent.start(RepeatSteps(replica, timed.batch, seconds, waits))

    def _replica(self, device: Device, agent: AgentClient, model: str, framework: str) -> ReplicaSpec:
        request = self.request
        job = request.job if request.job is not None and request.job.text == model else None
        spec = ReplicaSpec(framework, model, compute=request.compute)
        if job is None:
            spec = spec._replace(input_shape=request.input_shape, classes=request.classes)
        return ship_code(agent, device, spec, job)


def with_more_steps(timed: StepProfile, more: Repeat) -> StepProfile:
    """The timing with further steps; processor time is the mean over all."""
    own, others = len(timed.gradient_s.values), len(more.gradient_s.values)
    return timed._replace(
        gradient_s=_joined(timed.gradient_s, more.gradient_s),
        copy_s=_joined(timed.copy_s, more.copy_s),
        update_s=_joined(timed.update_s, more.update_s),
        cpu_s_per_step=(own * timed.cpu_s_per_step + others * more.cpu_s_per_step) / (own + others),
    )


def _joined(first: Samples, second: Samples) -> Samples:
    return first._replace(values=first.values + second.values)
