"""The devices that can take part in a training, and why others cannot."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from backends.strategies.engine import TORCH, Engine
from backends.strategies.strategy import Strategy
from backends.streams.spec import StreamSpec
from planner.errors import PlanError
from planner.predict import batch_shares, step_memory, stream_rates, torch_costs, update_costs
from planner.predict.device_timings import pick_framework, timed_steps
from planner.predict.step_memory import Further, StepRoom
from planner.profile.file import Profile
from profilers.records.steps import StepProfile


class Participants(NamedTuple):
    """Timings of those that can, by device, and reasons of those that cannot, by what is lacking.

    batch: images of a step that is planned. rooms: for steps in memory, of all that were timed.
    """

    steps: dict[str, StepProfile]
    batch: int
    rooms: dict[str, StepRoom]
    untimed: dict[str, str]
    unable: dict[str, str] = {}
    too_small: dict[str, str] = {}
    no_stream: dict[str, str] = {}

    @property
    def left_out(self) -> dict[str, str]:
        """The reason by device."""
        return self.untimed | self.unable | self.too_small | self.no_stream

    def check_names(self, profile: Profile, option: str, names: Iterable[str], remedy: str) -> None:
        """Raises PlanError where an option names a device that cannot take part."""
        for name in names:
            if name not in profile.devices:
                raise PlanError(f"{option} {name}: no such device; devices: {', '.join(profile.devices)}")
            if name in self.left_out:
                raise PlanError(f"{option} {name}: {self.left_out[name]}; profile it again or {remedy}")


def participants(
    profile: Profile,
    model: str,
    framework: str | None,
    batch: int | None,
    strategy: Strategy,
    engine: Engine,
    allow_plaintext: bool,
    global_batch: int | None,
    clips: bool,
    stream: StreamSpec | None,
) -> Participants:
    """Those of a profile, which may be none; arguments are those of ``costs_of``.

    Raises PlanError where the framework is unknown, or samples arrive at no device.
    """
    with_torch = engine.name == TORCH
    framework = TORCH if with_torch and framework is None else framework
    steps, untimed = timed_steps(
        profile, model, pick_framework(profile, framework, model), batch, any_batch=global_batch is not None
    )
    unable = torch_costs.unable(profile, steps, engine, allow_plaintext) if with_torch else {}
    steps = _without(steps, unable)
    if clips:
        steps = {name: update_costs.clipping(step, engine) for name, step in steps.items()}
    planned = batch or next((step.planned_batch for step in steps.values()), 1)
    rooms = {
        name: StepRoom.on(profile.devices[name], step, Further.of_member(step, strategy, engine))
        for name, step in steps.items()
    }
    if global_batch is None:
        too_small = step_memory.too_small(rooms, steps, planned)
    else:
        too_small = batch_shares.too_small(profile, steps, rooms)
    steps = _without(steps, too_small)
    no_stream = {} if stream is None else stream_rates.unknown_rates(profile, steps, stream)
    found = Participants(_without(steps, no_stream), planned, rooms, untimed, unable, too_small, no_stream)
    if no_stream and not found.steps:
        raise PlanError(f"--stream: {'; '.join(dict.fromkeys(no_stream.values()))}")
    return found


def nobody(found: Participants, profile: Profile, model: str, engine: Engine, batch: int | None) -> PlanError:
    """The error where no device can take part."""
    reasons = "; ".join(f"{name}: {reason}" for name, reason in found.left_out.items())
    if found.unable:
        return PlanError(f"--engine {engine.text}: no device can take part ({reasons})")
    if found.too_small:
        return PlanError(f"no device can train {model} ({reasons})")
    is_job = any(step.job for device in profile.devices.values() for step in device.steps if step.model == model)
    named = f" {'--job' if is_job else '--model'} {model}"
    option = "" if batch is None else f"{named} --batch-size {batch}"
    return PlanError(f"no device can train {model} ({reasons}); run `planner profile{option}`")


def _without(steps: Mapping[str, StepProfile], reasons: Mapping[str, str]) -> dict[str, StepProfile]:
    return {name: step for name, step in steps.items() if name not in reasons}
