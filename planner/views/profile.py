"""This view shows a profile: step times, watts and links; the raw samples are in its file."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from backends.frameworks.base import SGD
from planner.predict import update_costs
from planner.predict.device_costs import wattage
from planner.predict.step_memory import StepRoom
from planner.profile import data_wait, repeats
from planner.profile.file import DeviceProfile, Profile
from planner.profile.power_readings import disagreements, flagged, uncertainty
from planner.units import bytes_text, number, percent, seconds, watts
from planner.views.tables import TextTable, stack
from profilers import stats
from profilers.records.json_values import json_value
from profilers.records.links import LinkProfile
from profilers.records.readings import UNAVAILABLE
from profilers.records.steps import StepProfile


def render(profile: Profile, path: Path) -> RenderableType:
    """Step times, memory and watts by device and model, then rates between devices."""
    failures = [Text(line, style="red") for line in _failures(profile)]
    took = f"profiling took {seconds(profile.profiling_s())}; wrote {path}"
    tables = [_steps(profile), *_memory(profile), _power(profile), _links(profile), *_streams(profile)]
    return stack(tables, [*failures, *notes(profile), took])


def to_json(profile: Profile, path: Path) -> dict[str, Any]:
    """{"profile", "took_s", "devices": {name: {"error", "failures", "timings": [...]}}, "links",
    "link_errors", "notes"}.
    """
    return {
        "profile": str(path),
        "took_s": profile.profiling_s(),
        "devices": {
            name: {
                "error": device.error,
                "failures": device.failures,
                "timings": [_timed_json(device, timed) for timed in device.steps],
                **({"streams": json_value(device.streams)} if device.streams else {}),
            }
            for name, device in profile.devices.items()
        },
        "links": [
            {
                "source": link.source,
                "target": link.target,
                "tool": link.tool,
                "bytes_per_s": _median(link.bytes_per_s.values),
                "latency_s": _median(link.latency_s.values),
            }
            for link in profile.links
        ],
        "link_errors": profile.link_errors,
        "notes": notes(profile),
    }


def notes(profile: Profile) -> list[str]:
    """Sensors not used or in contradiction, unknown watts, timings that did not hold, slow data."""
    noted = []
    for name, device in profile.devices.items():
        windows = [window for window in (device.idle, *(timed.window for timed in device.steps)) if window]
        found = [note for window in windows for note in (*flagged(window), *disagreements(window))]
        sources = [wattage(device, timed).provenance for timed in device.steps]
        found += [note for timed in device.steps for note in (*repeats.notes(timed), *data_wait.notes(timed))]
        found += [f"watts {UNAVAILABLE}: {each.detail}" for each in sources if each.kind == UNAVAILABLE]
        found += [note for timed in device.steps for note in _memory_notes(timed)]
        found += _core_notes(device)
        noted += [f"{name}: {note}" for note in dict.fromkeys(found)]
    return noted


def _core_notes(device: DeviceProfile) -> list[str]:
    """Where it gets fewer cores than it may use, which predictions go by."""
    facts, spun = device.facts, device.spun
    if facts is None or spun is None or device.cores == facts.usable_cores:
        return []
    return [
        f"it may use {facts.usable_cores:g} cores, and {spun.threads} spinning threads got {spun.every:.2f}: "
        "something outside of it takes the rest, and predictions count what it got"
    ]


def _memory_notes(timed: StepProfile) -> list[str]:
    """What the operator must know of the memory of a step."""
    memory = timed.memory
    if memory is None:
        return []
    found = []
    if timed.requested_batch is not None:
        found.append(
            f"{timed.model}: batch {timed.requested_batch} does not fit into its memory; timed at {timed.batch}"
        )
    if memory.reason is not None:
        found.append(f"memory of a step is not known: {memory.reason}")
    if memory.is_shared:
        found.append("its GPU shares the memory of the processor")
    return found


def _failures(profile: Profile) -> Iterator[str]:
    for name, device in profile.devices.items():
        if device.error is not None:
            yield f"{name}: {device.error}"
        for model, reason in device.failures.items():
            if reason not in (device.error or ""):  # it is, where no model was left
                yield f"{name}: {model}: {reason}"
    for what, reason in profile.link_errors.items():
        yield f"{what}: {reason}"


def _steps(profile: Profile) -> TextTable:
    columns = ("device", "model", "framework", "batch", "step", "± 95 %", "build", "server update", "size", "warmed up")
    left, optional = columns[:3], ("size", "build", "framework", "warmed up", "server update")
    made = TextTable("time of a training step", columns, left, optional)
    for name, device in profile.devices.items():
        for timed in device.steps:
            totals = _step_totals_s(timed)
            made.add_row(
                _label(name, timed), timed.model, timed.framework, str(timed.batch),
                seconds(_mean(totals)), percent(stats.relative_interval95(totals) if totals else None),
                seconds(timed.build_s), seconds(_mean(update_costs.service_s(SGD, timed).values)),
                bytes_text(timed.parameter_bytes), "yes" if timed.steady else "no",
            )  # fmt: skip
    return made


def _memory(profile: Profile) -> list[TextTable]:
    """A table of the memory of a step; none for a profile of a version that did not measure it."""
    columns = ("device", "model", "framework", "batch", "memory", "GPU memory", "each sample", "largest batch")
    made = TextTable("peak memory of a training step", columns, columns[:3], ("framework", "each sample"))
    measured = [(name, device, timed) for name, device in profile.devices.items() for timed in device.steps]
    for name, device, timed in measured:
        if timed.memory is None:
            continue
        told = _memory_json(device, timed)
        made.add_row(
            _label(name, timed), timed.model, timed.framework, str(timed.batch),
            _bytes(told["host_bytes"]), _bytes(told["accelerator_bytes"]), _bytes(told["sample_bytes"]),
            "-" if told["largest_batch"] is None else f"{told['largest_batch']:,}",
        )  # fmt: skip
    return [made] if any(timed.memory for _, _, timed in measured) else []


def _memory_json(device: DeviceProfile, timed: StepProfile) -> dict[str, Any]:
    """Peaks at the timed batch size, the bytes that one sample more takes of all memories, and the
    largest batch size that fits; None for what is not known.
    """
    assert timed.memory is not None, "the caller asked"
    at_batch = next((each for each in timed.memory.batches if each.batch == timed.batch), None)
    room = StepRoom.on(device, timed)
    largest = room.largest()
    return {
        "host_bytes": at_batch and at_batch.host_bytes,
        "accelerator_bytes": at_batch and at_batch.accelerator_bytes,
        "sample_bytes": round(sum(each.line.sample_bytes for each in room.rooms)) if room.rooms else None,
        "largest_batch": int(largest) if math.isfinite(largest) else None,
    }


def _power(profile: Profile) -> TextTable:
    columns = ("device", "model", "framework", "idle", "± idle", "training", "± training", "watts from")
    left, optional = (*columns[:3], columns[-1]), ("framework", "± idle", "± training")
    made = TextTable("watts (± is half of the 95 % interval)", columns, left, optional)
    for name, device in profile.devices.items():
        for timed in device.steps:
            found = wattage(device, timed)
            made.add_row(
                _label(name, timed), timed.model, timed.framework,
                watts(_known(found.idle_w)), percent(uncertainty(found.idle_error)),
                watts(_known(found.busy_w)), percent(uncertainty(found.busy_error)), found.provenance.text,
            )  # fmt: skip
    return made


def _links(profile: Profile) -> TextTable:
    made = TextTable("links", ("from", "to", "tool", "rate", "one way"), left=("from", "to", "tool"))
    for link in profile.links:
        made.add_row(link.source, link.target, link.tool, _rate(link), seconds(_median(link.latency_s.values)))
    return made


def _streams(profile: Profile) -> list[TextTable]:
    """A table of the streams whose samples were counted; none where none were."""
    made = TextTable("streams of samples", ("device", "source", "samples/s", "± 95 %", "each"), ("device", "source"))
    for name, device in profile.devices.items():
        for source, each in device.streams.items():
            error = percent(uncertainty(each.error))
            made.add_row(name, source, number(each.rate), error, bytes_text(each.sample_bytes))
    return [made] if made.rows else []


def _timed_json(device: DeviceProfile, timed: StepProfile) -> dict[str, Any]:
    found = wattage(device, timed)
    return {
        "model": timed.model,
        "framework": timed.framework,
        "batch": timed.batch,
        "slowdown": timed.slowdown,
        "gradient_s": _mean(timed.gradient_s.values),
        "update_s": _mean(timed.update_s.values),
        "build_s": timed.build_s,
        "steady": timed.steady,
        "precise": timed.precise,
        "repeats_s": timed.repeats,
        **({} if timed.memory is None else {"memory": {**json_value(timed.memory), **_memory_json(device, timed)}}),
        "idle_w": _known(found.idle_w),
        "busy_w": _known(found.busy_w),
        "idle_uncertainty": uncertainty(found.idle_error),
        "busy_uncertainty": uncertainty(found.busy_error),
        "provenance": json_value(found.provenance),
        "sampling_share": timed.window.cpu_share,
    }


def _label(name: str, timed: StepProfile) -> str:
    return f"{name} (emulated, {timed.slowdown:g}x slower)" if timed.slowdown > 1 else name


def _step_totals_s(timed: StepProfile) -> list[float]:
    """Step times of the device alone."""
    return [sum(pair) for pair in zip(timed.gradient_s.values, timed.update_s.values, strict=True)]


def _rate(link: LinkProfile) -> str:
    rate = _median(link.bytes_per_s.values)
    return "-" if rate is None else f"{bytes_text(rate)}/s"


def _bytes(value: int | None) -> str:
    return "-" if value is None else bytes_text(value)


def _mean(values: tuple[float, ...] | list[float]) -> float | None:
    return float(stats.mean(values)) if values else None


def _median(values: tuple[float, ...]) -> float | None:
    return float(stats.median(values)) if values else None


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
