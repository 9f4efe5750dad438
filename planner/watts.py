"""The power models of a fleet while it is profiled: read, learned, saved, and asked where there is no sensor."""

from collections.abc import Mapping
from pathlib import Path

from planner import learn
from planner.errors import PowerError
from planner.fleet import Fleet
from planner.profilefile import DeviceProfile
from planner.wattage import whole_reading
from power_models import modelfile
from power_models.base import PowerModel


class Watts:
    """Models that the fleet file names are read at once. Raises PowerError for one that cannot be used."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self._folder = folder
        self._named = {device.name: read(device.power_model) for device in fleet.devices if device.power_model}

    def told(self, devices: Mapping[str, DeviceProfile]) -> dict[str, DeviceProfile]:
        """Devices without a working sensor of the whole, with what a model says of their windows.

        The model is the fleet file's, else one learned just now on a device of the same hardware. Models that were
        learned are saved in the profile's folder.
        """
        learned = {name: model for name, device in devices.items() if (model := learn.learn(device)) is not None}
        for name, model in learned.items():
            modelfile.save(model, self._folder / f"power-{name}.json")
        found = {}
        for name, device in devices.items():
            model = self._named.get(name) or learn.model_for(name, devices, learned)
            if model is not None and whole_reading(device.idle) is None:
                found[name] = learn.with_estimates(device, model)
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
