"""Which power model estimates the watts of which device of a fleet."""

from pathlib import Path

import numpy as np
import pytest

from planner.errors import PowerError
from planner.fleet.device import Device, Fleet
from planner.profile.fleet_power import FleetPowerModels, model_for
from power_models import model_file
from power_models.base import PowerModel, Target
from power_models.linear import Linear
from power_models.table import Table
from tests.planner.profile.test_learned_power import learned, with_sensor, without_sensor


def fleet(tmp_path: Path, **models: Path | None) -> Fleet:
    devices = tuple(Device(name=name, power_model=model) for name, model in models.items())
    return Fleet(devices, tmp_path / "fleet.toml")


def test_a_model_learned_on_one_device_estimates_its_twin_and_is_saved(tmp_path: Path) -> None:
    models = FleetPowerModels(fleet(tmp_path, a=None, twin=None), tmp_path)
    found = models.estimated({"a": with_sensor(), "twin": without_sensor()})
    assert list(found) == ["twin"]
    (reading,) = found["twin"].steps[0].window.power
    assert reading.watts == pytest.approx(13.75, rel=0.02)
    saved = model_file.load(tmp_path / "power-a.json")
    assert saved.about["sensor"] == "ina3221"


def test_the_model_that_the_fleet_file_names_comes_first(tmp_path: Path) -> None:
    FleetPowerModels(fleet(tmp_path, a=None), tmp_path).estimated({"a": with_sensor()})
    learned = tmp_path / "power-a.json"
    named = FleetPowerModels(fleet(tmp_path, b=learned), tmp_path)
    assert list(named.estimated({"b": without_sensor()})) == ["b"]


def test_a_device_with_a_sensor_gets_no_estimate(tmp_path: Path) -> None:
    FleetPowerModels(fleet(tmp_path, a=None), tmp_path).estimated({"a": with_sensor()})
    named = FleetPowerModels(fleet(tmp_path, a=tmp_path / "power-a.json"), tmp_path)
    assert named.estimated({"a": with_sensor()}) == {}


def test_a_model_that_cannot_be_read_is_named_before_anything_is_measured(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(PowerError, match="broken.json: no power model, or cut off"):
        FleetPowerModels(fleet(tmp_path, a=broken), tmp_path)


def test_a_model_of_something_else_than_watts_is_refused(tmp_path: Path) -> None:
    loads = Table.of({"u_cpu": [0.0, 0.5, 1.0]})
    path = tmp_path / "model.json"
    model_file.save(PowerModel.fit(Linear, loads, Target("rail_mW", np.array([1000.0, 2000.0, 3000.0]))), path)
    with pytest.raises(PowerError, match="a model of rail_mW, not of watts"):
        FleetPowerModels(fleet(tmp_path, a=path), tmp_path)


def test_a_model_serves_devices_of_the_same_hardware_only() -> None:
    model = learned()
    facts = with_sensor().facts
    assert facts is not None
    devices = {
        "a": with_sensor(),
        "twin": without_sensor(),
        "other": without_sensor()._replace(facts=facts._replace(board="another")),
        "unknown": without_sensor()._replace(facts=None),
    }
    models = {name: model_for(name, devices, {"a": model}) for name in devices}
    assert models == {"a": model, "twin": model, "other": None, "unknown": None}
