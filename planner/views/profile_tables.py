"""These tables show a profile: a row a device, or steps, memory, watts, links and streams."""

import math
from collections.abc import Sequence
from typing import Any

from planner.predict.memory import StepHeadroom
from planner.predict.shortage import shortage
from planner.predict.watts import wattage
from planner.profile.file import DeviceProfile, Profile
from planner.profile.power_readings import uncertainty
from planner.units import bytes_text, number, percent, seconds, watts
from planner.views.tables import TextTable, marked
from profilers import stats
from profilers.records.json_values import json_value
from profilers.records.links import LinkProfile
from profilers.records.steps import StepProfile


def in_short(profile: Profile) -> TextTable:
    """The step time and the watts of each device and model."""
    timed = [(name, device, each) for name, device in profile.devices.items() for each in device.steps]
    by_model = ("model",) if len({each.model for _, _, each in timed}) > 1 else ()
    columns = ("device", *by_model, "batch", "step", "±", "idle", "training", "watts from")
    made = TextTable("", columns, ("device", *by_model, "watts from"), ("watts from", "±"))
    for name, device, each in timed:
        found = wattage(device, each)
        made.add_row(
            marked([name], [name] if is_emulated(device, each) else []), *[each.model for _ in by_model],
            str(each.batch), seconds(step_s(each)), percent(_step_error(each)),
            watts(known(found.idle_w)), watts(known(found.busy_w)), found.provenance.kind,
        )  # fmt: skip
    return made


def is_emulated(device: DeviceProfile, timed: StepProfile) -> bool:
    return wattage(device, timed).provenance.emulated


def links_line(profile: Profile) -> list[str]:
    """The least and the greatest rate and delay of the links between devices, in one line."""
    between = [link for link in profile.links if link.source != link.target]
    rates = [float(stats.median(link.bytes_per_s.values)) for link in between if link.bytes_per_s.values]
    delays = [float(stats.median(link.latency_s.values)) for link in between if link.latency_s.values]
    if not rates or not delays:
        return []
    rate = f"{bytes_text(min(rates))}/s to {bytes_text(max(rates))}/s"
    return [f"links between devices: {rate}, {seconds(min(delays))} to {seconds(max(delays))} one way"]


def in_full(profile: Profile) -> list[TextTable]:
    """Steps, memory, watts, links and streams, a table each."""
    return [_steps(profile), *_memory(profile), _power(profile), _links(profile), *_streams(profile)]


def _steps(profile: Profile) -> TextTable:
    columns = ("device", "model", "framework", "batch", "step", "± 95 %", "build", "server update", "size", "warmed up")
    left, optional = columns[:3], ("size", "build", "framework", "warmed up", "server update")
    made = TextTable("time of a training step", columns, left, optional)
    for name, device in profile.devices.items():
        for timed in device.steps:
            made.add_row(
                _label(name, timed), timed.model, timed.framework, str(timed.batch),
                seconds(step_s(timed)), percent(_step_error(timed)),
                seconds(timed.costs.build_s), seconds(mean(timed.costs.service_s.values)),
                bytes_text(timed.size.parameter_bytes), "yes" if timed.setup.steady else "no",
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
        told = memory_figures(device, timed)
        made.add_row(
            _label(name, timed), timed.model, timed.framework, str(timed.batch),
            _bytes(told["host_bytes"]), _bytes(told["accelerator_bytes"]), _bytes(told["sample_bytes"]),
            "-" if told["largest_batch"] is None else f"{told['largest_batch']:,}",
        )  # fmt: skip
    return [made] if any(timed.memory for _, _, timed in measured) else []


def memory_figures(device: DeviceProfile, timed: StepProfile) -> dict[str, Any]:
    """Peaks at the timed batch size, the bytes that one sample more takes of all memories, the
    largest batch size that fits, and what would fit the one asked for; None for what is not known.
    """
    assert timed.memory is not None, "the caller asked"
    at_batch = next((each for each in timed.memory.batches if each.batch == timed.batch), None)
    headroom = StepHeadroom.on(device, timed)
    largest, short = headroom.largest(), shortage(headroom, timed.planned_batch)
    return {
        "host_bytes": at_batch and at_batch.host_bytes,
        "accelerator_bytes": at_batch and at_batch.accelerator_bytes,
        "sample_bytes": round(sum(each.line.sample_bytes for each in headroom.memories)) if headroom.memories else None,
        "largest_batch": int(largest) if math.isfinite(largest) else None,
        **({} if short is None else {"offers": json_value(short.offers)}),
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
                watts(known(found.idle_w)), percent(uncertainty(found.idle_error)),
                watts(known(found.busy_w)), percent(uncertainty(found.busy_error)), found.provenance.text,
            )  # fmt: skip
    return made


def _links(profile: Profile) -> TextTable:
    made = TextTable("links", ("from", "to", "tool", "rate", "one way"), left=("from", "to", "tool"))
    for link in profile.links:
        made.add_row(link.source, link.target, link.tool, _rate(link), seconds(median(link.latency_s.values)))
    return made


def _streams(profile: Profile) -> list[TextTable]:
    """A table of the streams whose samples were counted; none where none were."""
    made = TextTable("streams of samples", ("device", "source", "samples/s", "± 95 %", "each"), ("device", "source"))
    for name, device in profile.devices.items():
        for source, each in device.streams.items():
            error = percent(uncertainty(each.error))
            made.add_row(name, source, number(each.rate), error, bytes_text(each.sample_bytes))
    return [made] if made.rows else []


def _label(name: str, timed: StepProfile) -> str:
    return f"{name} (emulated, {timed.setup.slowdown:g}x slower)" if timed.setup.slowdown > 1 else name


def step_s(timed: StepProfile) -> float | None:
    """Mean seconds of a step of the device alone; None where none was timed."""
    return mean(_step_totals_s(timed))


def _step_error(timed: StepProfile) -> float | None:
    totals = _step_totals_s(timed)
    return stats.relative_interval95(totals) if totals else None


def _step_totals_s(timed: StepProfile) -> list[float]:
    return [sum(pair) for pair in zip(timed.gradient_s.values, timed.update_s.values, strict=True)]


def _rate(link: LinkProfile) -> str:
    rate = median(link.bytes_per_s.values)
    return "-" if rate is None else f"{bytes_text(rate)}/s"


def _bytes(value: int | None) -> str:
    return "-" if value is None else bytes_text(value)


def mean(values: Sequence[float]) -> float | None:
    return float(stats.mean(values)) if values else None


def median(values: Sequence[float]) -> float | None:
    return float(stats.median(values)) if values else None


def known(value: float) -> float | None:
    return None if math.isnan(value) else value
