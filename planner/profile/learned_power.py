"""Power models of a fleet's own: learned where a sensor tells the watts, used where none does.

Gu et al. fit one model for each kind of device (Eq. 1). What was sampled second by second while a device was idle and
while it trained is its data; a device of the same hardware without a sensor has its watts estimated from its counters.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from planner.errors import PowerError
from planner.fleet.device import Fleet
from planner.profile.file import DeviceProfile
from planner.profile.power_readings import whole_reading
from power_models import evaluate, modelfile
from power_models.base import PowerModel, Target
from power_models.table import Floats, Ints, Table
from profilers.records import EMULATED_MODEL, MODEL, PowerReading, Window

#: Least seconds with watts that a model is learned from.
FEWEST_ROWS = 8


#: What so few workloads can tell apart: trees and Gaussian processes need more.
KINDS = ("nameplate", "linear", "ridge", "nonnegative", "physical")


IDLE = "idle"


WATTS = "power"


#: Half a 90 % interval, in standard deviations.
Z90 = 1.644854


class Rows(NamedTuple):
    """Seconds of one device: counters, watts above zero, and the window of each, IDLE or a workload."""

    counters: Table
    watts: Floats
    window: tuple[str, ...]


def learn(device: DeviceProfile) -> PowerModel | None:
    """A model of what the device's own sensor said; None without a sensor of the whole, or with too few seconds.

    The kind that errs least is chosen, and its interval made, on workloads held out; of one workload on single seconds.
    """
    sensor = whole_reading(device.idle)
    found = None if sensor is None else _rows(device, sensor)
    if sensor is None or found is None or len(found.watts) < FEWEST_ROWS:
        return None
    target = Target(WATTS, found.watts)
    try:
        compared = evaluate.cross_validate(found.counters, target, list(_held_out(found.window)), KINDS)
        best = compared.held_out[compared.best()]
        about = {
            "sensor": sensor.sensor, "covers": sensor.covers, "emulated": sensor.source.startswith("emulated"),
            "workloads": sorted(set(found.window) - {IDLE}), "scores": best.scores()._asdict(),
        }  # fmt: skip
        return evaluate.final(found.counters, target, best, about)
    except ValueError:  # counters that never change tell nothing
        return None


def estimate(model: PowerModel, window: Window) -> PowerReading | None:
    """What a model says of a window; None where it asks for a counter that this device does not have.

    The error is that of the model at what was held out when it was fitted, which no number of seconds makes smaller.
    """
    counters = _counters(window)
    if not set(model.features) <= counters.keys():
        return None
    found = model.predict(Table({name: counters[name] for name in model.features}))
    outside = sorted({name for names in found.extrapolated for name in names})
    error = float(np.log(found.high / found.values).mean()) / Z90
    return PowerReading(
        sensor=f"power model ({model.name})",
        source=EMULATED_MODEL if model.about.get("emulated") else MODEL,
        covers=str(model.about.get("covers", "board")),
        watts=float(found.values.mean()),
        stdev=float(found.values.std()),
        count=len(found.values),
        reason=f"beyond what its model was fitted on: {', '.join(outside)}" if outside else None,
        relative_error=error if math.isfinite(error) else None,
    )


def estimated(window: Window, model: PowerModel) -> Window:
    """A window with what a model says of it, in place of what one said before."""
    said = estimate(model, window)
    kept = tuple(reading for reading in window.power if reading.source not in (MODEL, EMULATED_MODEL))
    return window._replace(power=kept if said is None else (*kept, said))


def with_estimates(device: DeviceProfile, model: PowerModel) -> DeviceProfile:
    """The same device with its windows ``estimated``."""
    return device._replace(
        idle=device.idle and estimated(device.idle, model),
        steps=tuple(step._replace(window=estimated(step.window, model)) for step in device.steps),
    )


def hardware(device: DeviceProfile) -> tuple[object, ...] | None:
    """What devices have in common that one power model holds for; None of a device that is not known."""
    facts = device.facts
    if facts is None:
        return None
    kind = device.device.get("kind")
    return kind, facts.board, facts.machine, facts.processor, facts.online_cores, facts.usable_cores, facts.gpus


def model_for(name: str, devices: Mapping[str, DeviceProfile], learned: Mapping[str, PowerModel]) -> PowerModel | None:
    """The model learned on a device of the same hardware, if there is one."""
    own = hardware(devices[name])
    alike = (model for other, model in learned.items() if hardware(devices[other]) == own)
    return next(alike, None) if own is not None else None


def _rows(device: DeviceProfile, sensor: PowerReading) -> Rows | None:
    """Every second in which the sensor and all counters that it shares with the others have a value."""
    windows = [(IDLE, device.idle), *((step.model, step.window) for step in device.steps)]
    told = [(name, window) for name, window in windows if window is not None and _watts(window, sensor) is not None]
    names = set.intersection(*(set(_counters(window)) for _, window in told)) if told else set()
    if not names:
        return None
    columns = {name: np.concatenate([_counters(window)[name] for _, window in told]) for name in sorted(names)}
    watts = np.concatenate([_floats(_watts(window, sensor) or ()) for _, window in told])
    of = [name for name, window in told for _ in _watts(window, sensor) or ()]
    whole = np.isfinite(np.column_stack([watts, *columns.values()])).all(axis=1) & (watts > 0)
    rows = np.flatnonzero(whole)
    return Rows(Table(columns).take(rows), watts[rows], tuple(of[row] for row in rows))


def _watts(window: Window, sensor: PowerReading) -> tuple[float | None, ...] | None:
    return window.seconds.get(f"{WATTS}:{sensor.sensor}")


def _counters(window: Window) -> dict[str, Floats]:
    """Second by second where it was sampled so; else the means of the window, a single row."""
    sampled = {name: _floats(values) for name, values in window.seconds.items() if not name.startswith(f"{WATTS}:")}
    means = {name: _floats([each.mean]) for name, each in window.counters.items() if each.mean is not None}
    return sampled or means


def _floats(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _held_out(window: tuple[str, ...]) -> Iterator[Ints]:
    """Rows that are held out together: each workload, idle seconds never; of one workload folds of single seconds."""
    names = np.array(window)
    workloads = sorted(set(window) - {IDLE})
    if len(workloads) > 1:
        yield from (np.flatnonzero(names == name) for name in workloads)
    else:
        yield from evaluate.folds(np.arange(len(window)))


class FleetPowerModels:
    """Models that the fleet file names are read at once. Raises PowerError for one that cannot be used."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self._folder = folder
        self._named = {device.name: read(device.power_model) for device in fleet.devices if device.power_model}

    def told(self, devices: Mapping[str, DeviceProfile]) -> dict[str, DeviceProfile]:
        """Devices without a working sensor of the whole, with what a model says of their windows.

        The model is the fleet file's, else one learned just now on a device of the same hardware. Models that were
        learned are saved in the profile's folder.
        """
        learned = {name: model for name, device in devices.items() if (model := learn(device)) is not None}
        for name, model in learned.items():
            modelfile.save(model, self._folder / f"power-{name}.json")
        found = {}
        for name, device in devices.items():
            model = self._named.get(name) or model_for(name, devices, learned)
            if model is not None and whole_reading(device.idle) is None:
                found[name] = with_estimates(device, model)
        return found


def read(path: Path) -> PowerModel:
    """A saved model of watts. Raises PowerError for what is none, and OSError."""
    try:
        model = modelfile.load(path)
    except ValueError as error:
        raise PowerError(str(error)) from error
    if not isinstance(model, PowerModel):
        raise PowerError(f"{path}: a transfer, which needs a run of the same job to go by; fit without --reference")
    if model.unit != "W":
        raise PowerError(f"{path}: a model of {model.target}, not of watts; fit one to a column named power or watts")
    return model
