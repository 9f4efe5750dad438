"""Each device without a power sensor is given the power model that fits its hardware."""

from collections.abc import Mapping
from pathlib import Path

from planner.errors import PowerError
from planner.fleet.device import Fleet
from planner.profile.file import DeviceProfile
from planner.profile.learned_power import learn, with_estimates
from planner.profile.power_readings import whole_reading
from power_models import model_file
from power_models.base import PowerModel


class FleetPowerModels:
    """The power models of a fleet: those that its file names, and learned ones.

    folder: where learned models are saved. Raises PowerError for a named one that cannot be used.
    """

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self._folder = folder
        self._named = {device.name: read(device.power_model) for device in fleet.devices if device.power_model}

    def estimated(self, devices: Mapping[str, DeviceProfile]) -> dict[str, DeviceProfile]:
        """Devices without a sensor of the whole, with watts by a named or else a learned model."""
        learned = {name: model for name, device in devices.items() if (model := learn(device)) is not None}
        for name, model in learned.items():
            model_file.save(model, self._folder / f"power-{name}.json")
        models = {name: self._named.get(name) or model_for(name, devices, learned) for name in devices}
        return {
            name: with_estimates(devices[name], model)
            for name, model in models.items()
            if model is not None and whole_reading(devices[name].idle) is None
        }


def model_for(name: str, devices: Mapping[str, DeviceProfile], learned: Mapping[str, PowerModel]) -> PowerModel | None:
    """The model learned on a device of the same hardware; None without one."""
    own = _hardware(devices[name])
    alike = (model for other, model in learned.items() if _hardware(devices[other]) == own)
    return next(alike, None) if own is not None else None


def read(path: Path) -> PowerModel:
    """A saved model of watts. PowerError for any other file, OSError for one that is unreadable."""
    try:
        model = model_file.load(path)
    except ValueError as error:
        raise PowerError(str(error)) from error
    if model.unit != "W":
        raise PowerError(f"{path}: a model of {model.target}, not of watts; fit one to a column named power or watts")
    return model


def _hardware(device: DeviceProfile) -> tuple[object, ...] | None:
    """What devices that share a power model have in common; None for one without facts."""
    facts = device.facts
    return facts and (device.device.get("kind"), facts.board, facts.machine, facts.processor, facts.gpus)
