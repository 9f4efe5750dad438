"""Discovery finds all kinds of sensors, on this machine and on an emulated one."""

from profilers import sensors
from profilers.file_tree import ROOT_VARIABLE, FileTree

NANO = "sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0/"
FILES = {NANO + "rail_name_0": "POM_5V_IN", NANO + "in_power0_input": "1750"}


def test_the_variable_names_the_tree_of_an_emulated_device(plant, monkeypatch):
    monkeypatch.setenv(ROOT_VARIABLE, str(plant(FILES).root))
    [sensor] = sensors.discover().sensors
    assert (sensor.name, sensor.source, sensor.read()) == ("ina3221:POM_5V_IN", "sensor", 1.75)


def test_an_explicit_root_overrides_the_variable(plant, monkeypatch):
    monkeypatch.setenv(ROOT_VARIABLE, "/nowhere")
    assert len(sensors.discover(plant(FILES).root).sensors) == 1


def test_the_machine_s_own_tree_is_not_emulated(monkeypatch):
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)
    assert FileTree().is_own
    found = sensors.discover()
    assert all(sensor.source in ("counter", "sensor") for sensor in found.sensors)
    assert all(reason for _, reason in found.missing)
