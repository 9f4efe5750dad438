"""The rails of each Jetson add up to its total in both sysfs layouts, none counted twice."""

import pytest

from profilers.sensors import ina3221

OLD = "sys/bus/i2c/drivers/ina3221x/{}/iio:device{}/"
NEW = "sys/bus/i2c/drivers/ina3221/{}/hwmon/hwmon{}/"


def old(address, number, **rails):
    """Rails by label in mW, in the layout up to JetPack 4."""
    files, folder = {}, OLD.format(address, number)
    for channel, (label, milliwatts) in enumerate(rails.items()):
        files[f"{folder}rail_name_{channel}"] = label + "\n"
        files[f"{folder}in_power{channel}_input"] = f"{milliwatts}\n"
    return files


def new(address, number, *rails):
    """(label, mV, mA) in the layout from JetPack 5 on."""
    folder = NEW.format(address, number)
    files = {folder + "in7_label": "sum of shunt voltages\n"}
    for channel, (label, millivolts, milliamperes) in enumerate(rails, 1):
        files[f"{folder}in{channel}_label"] = label + "\n"
        files[f"{folder}in{channel}_input"] = f"{millivolts}\n"
        files[f"{folder}curr{channel}_input"] = f"{milliamperes}\n"
    return files


def readings(found):
    return [(sensor.name, sensor.covers, round(sensor.read(), 6)) for sensor in found.sensors]


def test_tx2_reports_its_input_without_the_rails_that_it_feeds(plant):
    tree = plant(
        {
            **old("0-0040", 0, VDD_SYS_GPU=229, VDD_SYS_SOC=765, VDD_4V0_WIFI=0),
            **old("0-0041", 1, VDD_IN=3024, VDD_SYS_CPU=153, VDD_SYS_DDR=537),
        }
    )
    assert readings(ina3221.discover(tree)) == [("ina3221:VDD_IN", "module", 3.024)]


def test_agx_orin_is_summed_without_unused_channels_and_rails_fed_by_5_v(plant):
    tree = plant(
        {
            **new("1-0040", 3, ("VDD_GPU_SOC", 20000, 120), ("VDD_CPU_CV", 20000, 20), ("VIN_SYS_5V0", 5000, 800)),
            **new("1-0041", 4, ("NC", 9999, 9999), ("VDDQ_VDD2_1V8AO", 5000, 60), ("NC", 9999, 9999)),
        }
    )
    assert readings(ina3221.discover(tree)) == [("ina3221:sum", "module", 2.4 + 0.4 + 4.0)]


def test_orin_nano_reports_its_input(plant):
    rails = ("VDD_IN", 5000, 965), ("VDD_CPU_GPU_CV", 5000, 104), ("VDD_SOC", 5000, 295)
    tree = plant(new("1-0040", 1, *rails))
    assert readings(ina3221.discover(tree)) == [("ina3221:VDD_IN", "module", 4.825)]


def test_the_rails_of_an_unknown_board_belong_to_no_sum(plant):
    found = ina3221.discover(plant(old("1-0040", 0, VDD_A=10, VDD_B=20)))
    assert readings(found) == [("ina3221:VDD_A", "rail", 0.01), ("ina3221:VDD_B", "rail", 0.02)]


@pytest.mark.parametrize("broken", ["in_power1_input", "in_power2_input"])
def test_a_sum_fails_when_a_rail_fails(plant, tmp_path, broken):
    tree = plant(old("1-0040", 0, GPU=10, CPU=216, SYS5V=1889))
    (tmp_path / OLD.format("1-0040", 0) / broken).unlink()
    found = ina3221.discover(tree)
    assert found.sensors == ()
    assert found.missing[0][0] == "ina3221:sum" and broken in found.missing[0][1]
