"""Batteries are read while they discharge on a machine without mains power."""

import pytest

from profilers.file_tree import Unavailable
from profilers.sensors import battery

SUPPLY = "sys/class/power_supply/"


def supply(name, **files):
    return {f"{SUPPLY}{name}/{file}": f"{text}\n" for file, text in files.items()}


MAINS = supply("AC", type="Mains", online=0)
PACK = supply("BAT0", type="Battery", status="Discharging", power_now=12500000)


@pytest.mark.parametrize("current", [1500000, -1500000])
def test_watts_come_from_current_and_voltage_of_either_sign(plant, current):
    pack = supply("BAT0", type="Battery", status="Discharging", current_now=current, voltage_now=12000000)
    (sensor,) = battery.discover(plant(pack)).sensors
    assert sensor.read() == pytest.approx(18.0)


def test_several_batteries_add_up_and_one_at_rest_gives_nothing(plant):
    second = supply("BAT1", type="Battery", status="Discharging", power_now=2000000)
    idle = supply("BAT2", type="Battery", status="Not charging", power_now=9000000)
    (sensor,) = battery.discover(plant({**PACK, **second, **idle})).sensors
    assert sensor.read() == pytest.approx(14.5)


@pytest.mark.parametrize("status", ["Full", "Not charging", "Unknown"])
def test_on_mains_there_is_a_reason_and_no_watts(plant, status):
    found = battery.discover(plant({**PACK, **supply("BAT0", type="Battery", status=status)}))
    assert found == ((), (("battery", "no battery discharges: the machine runs on mains power"),))


def test_a_battery_beside_one_that_charges_is_not_read(plant):
    second = supply("BAT1", type="Battery", status="Charging", power_now=2000000)
    found = battery.discover(plant({**PACK, **second}))
    assert found == ((), (("battery", "BAT1 says 'Charging', so that something else feeds the machine"),))


def test_mains_that_come_back_end_the_readings(plant):
    (sensor,) = battery.discover(plant(PACK)).sensors
    plant(supply("BAT0", status="Charging"))
    with pytest.raises(Unavailable, match="something else feeds"):
        sensor.read()


@pytest.mark.parametrize("kind, online", [("Mains", 1), ("USB", 1), ("USB", 2), ("Wireless", 1), ("USB_PD", 1)])
def test_a_battery_beside_a_weak_charger_is_not_read(plant, kind, online):
    found = battery.discover(plant({**PACK, **supply("ucsi-source-psy-1", type=kind, online=online)}))
    assert found == ((), (("battery", "the machine also draws from its charger (ucsi-source-psy-1)"),))


def test_an_empty_usb_port_and_the_charger_of_a_pen_feed_nothing(plant):
    port = supply("ucsi-source-psy-1", type="USB", online=0)
    pen = supply("pen", type="USB", scope="Device", online=1)
    (sensor,) = battery.discover(plant({**PACK, **port, **pen})).sensors
    assert sensor.read() == pytest.approx(12.5)


def test_a_battery_that_states_nothing_while_it_discharges_leaves_no_total(plant):
    second = supply("BAT1", type="Battery", status="Discharging", power_now=0)
    found = battery.discover(plant({**PACK, **second}))
    assert found == ((), (("battery", "BAT1 states 0 W while it discharges"),))


@pytest.mark.parametrize("unknown", [-1, 4_294_967_295_000])
def test_a_battery_that_does_not_know_its_power_is_not_read(plant, unknown):
    (reason,) = battery.discover(plant(supply("BAT0", type="Battery", status="Discharging", power_now=unknown))).missing
    assert reason[1].startswith("BAT0 states ")


def test_the_battery_of_a_mouse_is_ignored(plant):
    mouse = supply("hidpp_battery_0", type="Battery", scope="Device", status="Discharging", power_now=1000)
    assert battery.discover(plant({**MAINS, **mouse})) == ((), ())


def test_a_battery_without_power_values_has_a_reason(plant):
    found = battery.discover(plant(supply("BAT0", type="Battery", status="Discharging", capacity=80)))
    assert found.sensors == () and "current_now does not exist" in found.missing[0][1]
