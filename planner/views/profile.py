"""This view shows a profile: what was measured, a row a device, and what to know of it."""

from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from planner.predict.memory import StepHeadroom
from planner.predict.shortage import shortage
from planner.predict.watts import wattage
from planner.profile import data_wait
from planner.profile.file import DeviceProfile, Profile
from planner.profile.power_readings import disagreements, flagged
from planner.units import counted, seconds
from planner.views import profile_tables as tables
from planner.views.notes import few, legend
from planner.views.tables import EMULATED_NOTE, stack
from profilers.records.readings import UNAVAILABLE
from profilers.records.steps import StepProfile


def render(profile: Profile, path: Path, verbose: bool = False) -> RenderableType:
    """What was measured, a row a device, every failure, and the notes that matter most.

    verbose: also memory, watts and links in tables of their own, and every note.
    """
    failed = [Text(line, style="red") for line in failures(profile)]
    shown = tables.in_full(profile) if verbose else [tables.in_short(profile)]
    below: list[str | Text] = [
        *([] if verbose else _short_lines(profile)),
        *failed,
        *few(notes(profile), details(profile), verbose),
        f"wrote {path}",
    ]
    return stack([Text(summary(profile), style="bold"), *shown], below)


def _short_lines(profile: Profile) -> list[str]:
    """The links, and the sign of emulated devices, where tables do not show them in full."""
    emulated = any(tables.is_emulated(device, timed) for device in profile.devices.values() for timed in device.steps)
    return [*tables.links_line(profile), *legend(EMULATED_NOTE if emulated else None)]


def summary(profile: Profile) -> str:
    """``Profiled net on 3 devices in 28.0 s: a step takes 33.0 ms on desktop to 105 ms on tx2.``"""
    timed = {name: device.steps for name, device in profile.devices.items() if device.steps}
    models = list(dict.fromkeys(step.model for steps in timed.values() for step in steps))
    what = models[0] if len(models) == 1 else counted(len(models), "model")
    of = "" if len(timed) == len(profile.devices) else f" of {len(profile.devices)}"
    where = f"{len(timed)}{of} device{'' if len(profile.devices) == 1 else 's'}"
    took = f"Profiled {what} on {where} in {seconds(profile.profiling_s())}"
    return f"{took}{_range(timed) if len(models) == 1 else ''}."


def _range(timed: dict[str, tuple[StepProfile, ...]]) -> str:
    """The shortest and the longest step of one model."""
    known = [(step_s, name) for name, steps in timed.items() for step in steps if (step_s := tables.step_s(step))]
    if not known:
        return ""
    (short_s, fastest), (long_s, slowest) = min(known), max(known)
    longest = "" if fastest == slowest else f" to {seconds(long_s)} on {slowest}"
    return f": a step takes {seconds(short_s)} on {fastest}{longest}"


def notes(profile: Profile) -> list[str]:
    """What the operator may want to mend, the most important kind first."""
    kinds = (_unknown_watts, _short_memory, _odd_sensors, _slow_data, _unknown_memory)
    return [
        f"{name}: {note}"
        for kind in kinds
        for name, device in profile.devices.items()
        for note in dict.fromkeys(kind(device))
    ]


def details(profile: Profile) -> list[str]:
    """Which GPUs share the memory of the processor."""
    shared = [
        name
        for name, device in profile.devices.items()
        if any(timed.memory and timed.memory.is_shared for timed in device.steps)
    ]
    return [f"{name}: its GPU shares the memory of the processor" for name in shared]


def failures(profile: Profile) -> Iterator[str]:
    """Why a device, a model or a link was not measured."""
    for name, device in profile.devices.items():
        if device.error is not None:
            yield f"{name}: {device.error}"
        for model, reason in device.failures.items():
            if reason not in (device.error or ""):  # it is, where no model was left
                yield f"{name}: {model}: {reason}"
    for what, reason in profile.link_errors.items():
        yield f"{what}: {reason}"


def _unknown_watts(device: DeviceProfile) -> list[str]:
    sources = [wattage(device, timed).provenance for timed in device.steps]
    return [f"watts {UNAVAILABLE}: {each.detail}" for each in sources if each.kind == UNAVAILABLE]


def _short_memory(device: DeviceProfile) -> list[str]:
    """What would fit where the batch asked for does not, or a smaller one was timed."""
    found = []
    for timed in device.steps:
        batch, timed_at = timed.planned_batch, f"; timed at {timed.batch}" if timed.setup.requested_batch else ""
        short = shortage(StepHeadroom.on(device, timed), batch)
        if short is not None:
            found.append(f"{timed.model}: {short.text}{timed_at}")
        elif timed_at:
            found.append(f"{timed.model}: batch {batch} does not fit into its memory{timed_at}")
    return found


def _odd_sensors(device: DeviceProfile) -> list[str]:
    """Sensors that are not used, or contradict each other."""
    windows = [window for window in (device.idle, *(timed.window for timed in device.steps)) if window]
    return [note for window in windows for note in (*flagged(window), *disagreements(window))]


def _slow_data(device: DeviceProfile) -> list[str]:
    return [note for timed in device.steps for note in data_wait.notes(timed)]


def _unknown_memory(device: DeviceProfile) -> list[str]:
    reasons = [timed.memory.reason for timed in device.steps if timed.memory]
    return [f"memory of a step is not known: {reason}" for reason in reasons if reason is not None]
