"""A power model is learned from a device's own sensor and estimates watts where there is none.

Gu et al. (Eq. 1) fit one model for each kind of device. The data are the seconds sampled while the
device was idle and while it trained. Other devices of the same hardware are given its model.
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from planner.profile.file import DeviceProfile
from planner.profile.power_readings import whole_reading
from planner.provenance import STATED
from power_models import evaluate
from power_models.base import PowerModel, Target
from power_models.table import Floats, Ints, Table
from profilers.records.readings import MODEL, PowerReading, Window

#: Fewest seconds with watts that a model is learned from.
MIN_ROWS = 8
#: Kinds that so few workloads can tell apart; trees and Gaussian processes need more data.
KINDS = ("nameplate", "linear", "physical")
IDLE = "idle"
WATTS = "power"
#: Half a 90 % interval, in standard deviations.
Z90 = 1.644854


class Rows(NamedTuple):
    """Seconds of one device as training data: counters, watts, and what ran, a model or IDLE."""

    counters: Table
    watts: Floats
    workload: tuple[str, ...]


def learn(device: DeviceProfile) -> PowerModel | None:
    """Fit a model to the watts of the device's own sensor; None where that cannot be done.

    The kind with the least error on held-out workloads, or seconds, is chosen; its interval is
    their error. It needs a sensor of the whole device and MIN_ROWS seconds.
    """
    sensor = whole_reading(device.idle)
    rows = None if sensor is None else _rows(device, sensor)
    if sensor is None or rows is None or len(rows.watts) < MIN_ROWS:
        return None
    target = Target(WATTS, rows.watts)
    try:
        held_out = list(_held_out(rows.workload))
        compared = evaluate.cross_validate(rows.counters, target, held_out, KINDS)
        best = compared.held_out[compared.best()]
        about = {
            "sensor": sensor.sensor,
            "covers": sensor.covers,
            "workloads": sorted(set(rows.workload) - {IDLE}),
            "scores": best.scores()._asdict(),
        }
        return evaluate.final(rows.counters, target, best, about)
    except ValueError:  # counters that never change cannot be fitted
        return None


def estimate(model: PowerModel, window: Window) -> PowerReading | None:
    """Estimate the watts of a window; None where it lacks a counter that the model needs.

    The error is the model's on held-out data, which more seconds do not reduce.
    """
    counters = _counters(window)
    if not set(model.features) <= counters.keys():
        return None
    predicted = model.predict(Table({name: counters[name] for name in model.features}))
    outside = sorted({name for names in predicted.extrapolated for name in names})
    error = float(np.log(predicted.high / predicted.values).mean()) / Z90
    return PowerReading(
        sensor=f"power model ({model.name})",
        source=MODEL,
        covers=str(model.about.get("covers", STATED)),
        watts=float(predicted.values.mean()),
        stdev=float(predicted.values.std()),
        count=len(predicted.values),
        reason=f"beyond what its model was fitted on: {', '.join(outside)}" if outside else None,
        relative_error=error if math.isfinite(error) else None,
    )


def estimated(window: Window, model: PowerModel) -> Window:
    """The window with a model's estimate in place of any earlier one."""
    estimate_now = estimate(model, window)
    sensors = tuple(each for each in window.power if each.source != MODEL)
    return window._replace(power=sensors if estimate_now is None else (*sensors, estimate_now))


def with_estimates(device: DeviceProfile, model: PowerModel) -> DeviceProfile:
    """The device with all its windows ``estimated``."""
    return device._replace(
        idle=device.idle and estimated(device.idle, model),
        steps=tuple(step._replace(window=estimated(step.window, model)) for step in device.steps),
    )


def _rows(device: DeviceProfile, sensor: PowerReading) -> Rows | None:
    """The seconds in which the sensor and all common counters have a value."""
    windows = [(IDLE, device.idle), *((step.model, step.window) for step in device.steps)]
    column = f"{WATTS}:{sensor.sensor}"
    sampled = [
        (name, _counters(window), _floats(window.seconds[column]))
        for name, window in windows
        if window is not None and column in window.seconds
    ]
    common = set.intersection(*(set(counters) for _, counters, _ in sampled)) if sampled else set()
    if not common:
        return None
    columns = {name: np.concatenate([counters[name] for _, counters, _ in sampled]) for name in sorted(common)}
    watts = np.concatenate([values for _, _, values in sampled])
    workload = [name for name, _, values in sampled for _ in values]
    complete = np.isfinite(np.column_stack([watts, *columns.values()])).all(axis=1) & (watts > 0)
    rows = np.flatnonzero(complete)
    return Rows(Table(columns).take(rows), watts[rows], tuple(workload[row] for row in rows))


def _counters(window: Window) -> dict[str, Floats]:
    """A row a second where the window was sampled so, else one row of its means."""
    sampled = {name: _floats(values) for name, values in window.seconds.items() if not name.startswith(f"{WATTS}:")}
    means = {name: _floats([each.mean]) for name, each in window.counters.items() if each.mean is not None}
    return sampled or means


def _floats(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _held_out(workload: tuple[str, ...]) -> Iterator[Ints]:
    """The rows of each fold: one workload each, but idling, or single seconds of the only one."""
    names = np.array(workload)
    trained = sorted(set(workload) - {IDLE})
    if len(trained) > 1:
        yield from (np.flatnonzero(names == name) for name in trained)
    else:
        yield from evaluate.folds(np.arange(len(workload)))
