"""The rails of each Jetson give its total in every sysfs layout, none counted twice."""

import pytest

from profilers.sensors import power_monitors

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
    assert readings(power_monitors.discover(tree)) == [("ina3221:VDD_IN", "module", 3.024)]


def test_agx_orin_is_summed_without_unused_channels_and_rails_fed_by_5_v(plant):
    tree = plant(
        {
            **new("1-0040", 3, ("VDD_GPU_SOC", 20000, 120), ("VDD_CPU_CV", 20000, 20), ("VIN_SYS_5V0", 5000, 800)),
            **new("1-0041", 4, ("NC", 9999, 9999), ("VDDQ_VDD2_1V8AO", 5000, 60), ("NC", 9999, 9999)),
        }
    )
    assert readings(power_monitors.discover(tree)) == [("ina3221:sum", "module", 2.4 + 0.4 + 4.0)]


def test_orin_nano_reports_its_input(plant):
    rails = ("VDD_IN", 5000, 965), ("VDD_CPU_GPU_CV", 5000, 104), ("VDD_SOC", 5000, 295)
    tree = plant(new("1-0040", 1, *rails))
    assert readings(power_monitors.discover(tree)) == [("ina3221:VDD_IN", "module", 4.825)]


def test_the_rails_of_an_unknown_board_belong_to_no_sum(plant):
    found = power_monitors.discover(plant(old("1-0040", 0, VDD_A=10, VDD_B=20)))
    assert readings(found) == [("ina3221:VDD_A", "rail", 0.01), ("ina3221:VDD_B", "rail", 0.02)]


@pytest.mark.parametrize("broken", ["in_power1_input", "in_power2_input"])
def test_a_sum_fails_when_a_rail_fails(plant, tmp_path, broken):
    tree = plant({**old("1-0040", 0, GPU=10, CPU=216, SOC=864), **old("1-0041", 1, CV=0, VDDRQ=144, SYS5V=1889)})
    (tmp_path / OLD.format("1-0040", 0) / broken).unlink()
    found = power_monitors.discover(tree)
    assert found.sensors == ()
    assert found.missing[0][0] == "ina3221:sum" and broken in found.missing[0][1]


# -- Thor, and monitors of other kinds -------------------------------------------------------------

INNER = ("VDD_GPU", 20000, 100), ("VDD_CPU_SOC_MSS", 20000, 300), ("VIN_SYS_5V0", 5000, 1200)


def single(chip, number, **files):
    """A monitor of one supply, as its driver and the class of all hwmon devices show it."""
    made = {}
    for folder in (f"sys/bus/i2c/drivers/{chip}/2-0044/hwmon/hwmon{number}", f"sys/class/hwmon/hwmon{number}"):
        made |= {f"{folder}/{name}": f"{text}\n" for name, text in {"name": chip, **files}.items()}
    return made


def test_thor_reports_the_input_that_another_monitor_measures(plant):
    power = single("ina238", 6, in1_label="VIN", in1_input=20000, curr1_input=1101, power1_input=22000000)
    found = power_monitors.discover(plant({**new("2-0040", 5, *INNER), **power}))
    assert readings(found) == [("ina238:VIN", "board", 22.0)]


def test_the_inner_rails_of_thor_alone_are_no_total(plant):
    found = power_monitors.discover(plant(new("2-0040", 5, *INNER)))
    assert {covers for _, covers, _ in readings(found)} == {"rail"}


def test_a_part_of_the_rails_of_a_known_board_is_no_total(plant):
    found = power_monitors.discover(plant(old("1-0040", 0, GPU=10, CPU=216, SYS5V=1889)))
    assert [name for name, _, _ in readings(found)] == ["ina3221:GPU", "ina3221:CPU", "ina3221:SYS5V"]
    assert {covers for _, covers, _ in readings(found)} == {"rail"}


def test_two_inputs_of_one_name_are_no_total(plant):
    found = power_monitors.discover(plant({**old("1-0040", 0, VIN=10), **old("1-0041", 1, VIN=20)}))
    assert readings(found) == [("ina3221:VIN", "rail", 0.03)]


@pytest.mark.parametrize("chip", ["ina219", "ina226", "ina238"])
def test_a_monitor_without_a_label_belongs_to_no_sum(plant, chip):
    found = power_monitors.discover(plant(single(chip, 2, in1_input=5000, curr1_input=600, power1_input=3100000)))
    assert readings(found) == [(f"{chip}:hwmon2.1", "rail", 3.1)]


def test_a_monitor_without_a_power_file_gives_volts_times_amperes(plant):
    found = power_monitors.discover(plant(single("ina226", 2, in1_label="VIN", in1_input=12000, curr1_input=2500)))
    assert readings(found) == [("ina226:VIN", "board", 30.0)]


def test_other_hwmon_devices_are_left_alone(plant):
    amd = {"sys/class/hwmon/hwmon1/name": "amdgpu", "sys/class/hwmon/hwmon1/power1_input": "9000000"}
    assert power_monitors.discover(plant(amd)) == ((), ())
