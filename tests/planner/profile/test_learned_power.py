"""Watts learned from a device's own sensor, and estimated where there is none."""

import math

import numpy as np
import pytest

from planner.predict.watts import wattage
from planner.profile import learned_power
from planner.profile.file import DeviceProfile
from planner.profile.power_readings import whole_reading
from power_models.base import PowerModel, Target
from power_models.gp import GaussianProcess
from power_models.table import Table
from profilers.records.readings import MODEL, PowerReading, Reading, Window
from tests.planner import profiles

SENSOR = "ina3221"


def window(loads: list[float], sensor: bool = True, source: str = "sensor") -> Window:
    """A second for each load, of a device that draws 5 W and 10 W more when busy."""
    watts = [5 + 10 * load for load in loads]
    seconds: dict[str, tuple[float | None, ...]] = {"u_cpu": tuple(loads), "f_cpu": tuple(1e9 for _ in loads)}
    power: tuple[PowerReading, ...] = ()
    if sensor:
        seconds[f"power:{SENSOR}"] = tuple(watts)
        power = (PowerReading(SENSOR, source, "module", float(np.mean(watts)), 0.1, len(loads), relative_error=0.01),)
    counters = {"u_cpu": Reading("1", float(np.mean(loads)), 0.0, len(loads))}
    return Window(float(len(loads)), counters, power, 0.0, seconds)


def device(idle: Window, **trained: Window) -> DeviceProfile:
    """A device that was idle, and then trained models."""
    steps = tuple(profiles.step(model=model, window=found) for model, found in trained.items())
    return profiles.device(idle_w=None, max_w=None)._replace(idle=idle, steps=steps)


def with_sensor(source: str = "sensor") -> DeviceProfile:
    return device(
        window([0.0, 0.01, 0.02], source=source),
        nin=window([0.9, 0.95, 0.92, 0.94], source=source),
        resnet=window([0.8, 0.85, 0.82, 0.84], source=source),
    )


def without_sensor() -> DeviceProfile:
    return device(window([0.0, 0.02], sensor=False), nin=window([0.85, 0.9], sensor=False))


def learned(source: str = "sensor") -> PowerModel:
    model = learned_power.learn(with_sensor(source))
    assert model is not None
    return model


def estimate(model: PowerModel, window: Window) -> PowerReading:
    reading = learned_power.estimate(model, window)
    assert reading is not None
    return reading


def test_a_sensor_and_counters_together_teach_a_model() -> None:
    model = learned()
    assert model.features == ("f_cpu", "u_cpu")
    assert model.about["covers"] == "module"
    assert model.about["workloads"] == ["nin", "resnet"]
    reading = estimate(model, window([0.5], sensor=False))
    assert reading.watts == pytest.approx(10, rel=0.02)
    assert (reading.source, reading.covers) == (MODEL, "module")


def test_too_few_seconds_teach_nothing() -> None:
    assert learned_power.learn(device(window([0.0, 0.01]), nin=window([0.9, 0.95]))) is None


def test_without_a_sensor_nothing_is_learned() -> None:
    assert learned_power.learn(without_sensor()) is None


def test_one_workload_teaches_a_model_too() -> None:
    model = learned_power.learn(device(window([0.0, 0.01, 0.0]), nin=window([0.7, 0.9, 0.8, 0.95, 0.85, 0.75])))
    assert model is not None
    reading = estimate(model, window([0.4], sensor=False))
    assert reading.watts == pytest.approx(9, rel=0.02)


def test_a_device_without_a_sensor_gets_its_watts_from_the_model() -> None:
    model = learned()
    found = learned_power.with_estimates(without_sensor(), model)
    watts = wattage(found, found.steps[0])
    assert watts.idle_w == pytest.approx(5.1, rel=0.02)
    assert watts.busy_w == pytest.approx(13.75, rel=0.02)
    assert watts.provenance.kind == MODEL
    assert "power model of the module" in watts.provenance.text
    assert whole_reading(found.idle) is None, "a model is no sensor to learn from"


def test_estimates_replace_earlier_ones() -> None:
    model = learned()
    twice = learned_power.with_estimates(learned_power.with_estimates(without_sensor(), model), model)
    assert len(twice.steps[0].window.power) == 1


def test_an_estimate_beyond_the_fitted_ranges_names_the_counters() -> None:
    model = learned()
    reading = estimate(model, window([1.0], sensor=False))
    assert reading.reason == "beyond what its model was fitted on: u_cpu"


def test_a_device_that_lacks_a_counter_gets_no_estimate() -> None:
    model = learned()
    bare = Window(1.0, {}, ())
    assert learned_power.estimate(model, bare) is None
    assert learned_power.estimated(bare, model) == bare


def test_without_seconds_the_means_of_a_window_count() -> None:
    model = learned()
    counters = {"u_cpu": Reading("1", 0.5, 0.0, 9), "f_cpu": Reading("Hz", 1e9, 0.0, 9)}
    reading = estimate(model, Window(9.0, counters, ()))
    assert reading.count == 1
    assert reading.watts == pytest.approx(10, rel=0.03)


def test_the_error_is_that_of_the_model_at_unseen_workloads() -> None:
    model = learned()
    reading = estimate(model, window([0.5] * 50, sensor=False))
    assert reading.relative_error is not None
    assert reading.relative_error == pytest.approx(model.width / 1.644854)
    assert math.isfinite(reading.relative_error)


def test_the_error_of_a_model_that_knows_its_own_is_that_of_its_interval() -> None:
    loads = Table.of({"u_cpu": [0.0, 0.25, 0.5, 0.75, 1.0]})
    model = PowerModel.fit(GaussianProcess, loads, Target("power", 5 + 10 * loads.numbers("u_cpu")), width=2.0)
    reading = estimate(model, window([0.5], sensor=False))
    found = model.predict(Table.of({"u_cpu": [0.5]}))
    assert reading.relative_error is not None
    assert reading.relative_error == pytest.approx(math.log(found.high[0] / found.values[0]) / 1.644854)
    assert reading.relative_error < 0.5
