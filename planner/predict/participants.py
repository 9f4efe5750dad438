"""The devices that can take part in a training, and why others cannot."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from backends.frameworks.process_group import SHARDING
from backends.strategies.engine import TORCH
from backends.training.run_settings import RunSettings
from planner.errors import PlanError
from planner.predict import global_batch, messages, shortage, stream_waits
from planner.predict.buckets import has_nccl
from planner.predict.memory import Further, StepHeadroom
from planner.predict.request import RecommendRequest
from planner.predict.shortage import Shortage
from planner.predict.timings import pick_framework, timed_steps
from planner.profile.file import DeviceProfile, Profile
from profilers.mixed_precision import FP16
from profilers.records.steps import StepProfile


class Participants(NamedTuple):
    """Timings of those that can, by device, and reasons of those that cannot, by what is lacking.

    batch: images of a step that is planned. headroom: for steps in memory, of all that were timed.
    least_members: of a cluster in which a device has the memory of a member, by device, where the
        model is divided.
    """

    steps: dict[str, StepProfile]
    batch: int
    headroom: dict[str, StepHeadroom]
    untimed: dict[str, str]
    unable: dict[str, str] = {}
    too_small: dict[str, Shortage] = {}
    no_stream: dict[str, str] = {}
    least_members: dict[str, int] = {}

    @property
    def left_out(self) -> dict[str, str]:
        """The reason by device."""
        too_small = {name: f"{self.headroom[name].step.model}: {short.text}" for name, short in self.too_small.items()}
        return self.untimed | self.unable | too_small | self.no_stream

    def check_names(self, profile: Profile, option: str, names: Iterable[str], remedy: str) -> None:
        """Raises PlanError where an option names a device that cannot take part."""
        for name in names:
            if name not in profile.devices:
                raise PlanError(f"{option} {name}: no such device; devices: {', '.join(profile.devices)}")
            if name in self.left_out:
                raise PlanError(f"{option} {name}: {self.left_out[name]}; profile it again or {remedy}")


def participants(profile: Profile, model: str, request: RecommendRequest) -> Participants:
    """Those of a profile, which may be none. model: one that was profiled.

    Raises PlanError where the framework is unknown, or samples arrive at no device.
    """
    settings, shares_batch = request.settings, request.global_batch is not None
    engine = settings.engine
    framework = request.framework or (TORCH if engine.name == TORCH else None)
    steps, untimed = timed_steps(
        profile, model, pick_framework(profile, framework, model), settings.batch or None, any_batch=shares_batch
    )
    unable = _unable_to_use_torch(profile, steps, request) if engine.name == TORCH else {}
    steps = _without(steps, unable)
    if settings.clip_norm is not None:
        steps = {name: messages.clipping(step, engine) for name, step in steps.items()}
    planned = settings.batch or next((step.planned_batch for step in steps.values()), 1)
    least, headroom, too_small = _fitting(profile, steps, request, planned)
    steps = _without(steps, too_small)
    no_stream = {} if settings.stream is None else stream_waits.unknown_rates(profile, steps, settings.stream)
    found = Participants(_without(steps, no_stream), planned, headroom, untimed, unable, too_small, no_stream, least)
    if no_stream and not found.steps:
        raise PlanError(f"--stream: {'; '.join(dict.fromkeys(no_stream.values()))}")
    return found


def nobody(found: Participants, profile: Profile, model: str, settings: RunSettings) -> PlanError:
    """The error where no device can take part."""
    reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_out.items())
    if found.unable:
        return PlanError(f"--engine {settings.engine.text}: no device can take part ({reasons})")
    if found.too_small:
        return PlanError(f"no device can train {model} ({reasons})")
    is_job = any(step.setup.job for device in profile.devices.values() for step in device.steps if step.model == model)
    named = f" {'--job' if is_job else '--model'} {model}"
    option = f"{named} --batch-size {settings.batch}" if settings.batch else ""
    return PlanError(f"no device can train {model} ({reasons}); run `planner profile{option}`")


def _fitting(
    profile: Profile, steps: Mapping[str, StepProfile], request: RecommendRequest, planned: int
) -> tuple[dict[str, int], dict[str, StepHeadroom], dict[str, Shortage]]:
    """``least_members``, ``headroom`` and ``too_small``: those of the largest cluster.

    A model that is divided takes less of each member the more there are.
    """
    engine, strategy = request.settings.engine, request.settings.strategy
    least: dict[str, int] = {}
    for members in range(2, max(2, len(steps)) + 1) if engine.is_sharded else (len(steps),):
        headroom = {
            name: StepHeadroom.on(profile.devices[name], step, Further.of_member(step, strategy, engine, members))
            for name, step in steps.items()
        }
        too_small = (
            shortage.too_small(headroom, steps, planned)
            if request.global_batch is None
            else global_batch.too_small(profile, steps, headroom)
        )
        least = dict.fromkeys(_without(steps, too_small), members) | least
    return least, headroom, too_small


def _without(steps: Mapping[str, StepProfile], reasons: Mapping[str, object]) -> dict[str, StepProfile]:
    return {name: step for name, step in steps.items() if name not in reasons}


def _unable_to_use_torch(
    profile: Profile, steps: Mapping[str, StepProfile], request: RecommendRequest
) -> dict[str, str]:
    """The reason by device that cannot take part in a run by torch.distributed."""
    reasons = {name: _unable(profile.devices[name], step, request) for name, step in steps.items()}
    return {name: reason for name, reason in reasons.items() if reason}


def _unable(device: DeviceProfile, step: StepProfile, request: RecommendRequest) -> str | None:
    if step.framework != "torch":
        return f"torch.distributed trains with torch, and it computes with {step.framework}"
    if step.setup.compute.precision == FP16:
        return "fp16 scales its loss, which torch.distributed cannot do here; profile it with --precision bf16 or fp32"
    if step.costs.collectives == ():
        return f"its torch {step.setup.framework_version} was built without torch.distributed"
    if request.settings.engine.is_sharded and SHARDING not in (step.costs.collectives or ()):
        return f"its torch {step.setup.framework_version} has no FSDP2 whose exchange can be set, which newer ones have"
    if request.settings.engine.backend == "nccl" and not has_nccl(step):
        return "it has no GPU with NCCL; leave backend=nccl out"
    if device.device.get("host") is not None and not request.allow_plaintext:
        return "torch.distributed does not encrypt what crosses its network; allow it with --allow-plaintext"
    return None
