"""Addresses of meters become sensors, or a message that names the mistake."""

import time

import pytest

from profilers.file_tree import Unavailable
from profilers.sensors import discover, external_meters


@pytest.mark.parametrize(
    "url, name",
    [
        ("shelly://192.0.2.7", "meter:shelly:192.0.2.7"),
        ("shelly1://plug-3.local:8080/", "meter:shelly1:plug-3.local:8080"),
        ("tasmota://[fd00::7]:80", "meter:tasmota:[fd00::7]:80"),
        ("csv:///var/log/meter.csv", "meter:csv:/var/log/meter.csv"),
        ("csv:///a%20b.csv?offset_s=-2.5&column=Active+Power", "meter:csv:/a b.csv#Active Power"),
    ],
)
def test_addresses(url, name):
    sensor = external_meters.meter_sensor(url)
    assert (sensor.name, sensor.covers) == (name, "wall")


@pytest.mark.parametrize(
    "url, reason",
    [
        ("shely://192.0.2.7", "shely://192.0.2.7 is no meter; known are shelly://, shelly1://, tasmota:// and csv://"),
        ("shelly://", "is not of the form shelly://host"),
        ("tasmota://192.0.2.7?id=1", "is not of the form"),
        ("shelly://[::1", "a meter's address is wrong"),
        ("csv://log.csv", "is not of the form csv:///path"),
        ("csv://", "is not of the form csv:///path"),
        ("csv:///log.csv?colum=watts", "no option colum; there are offset_s and column"),
        ("csv:///log.csv?offset_s=soon", "offset_s is no number"),
        ("csv:///log.csv?offset_s=nan", "offset_s is out of range"),
    ],
)
def test_a_wrong_address_is_rejected_with_the_mistake(url, reason):
    with pytest.raises(Unavailable, match=reason.replace("?", r"\?")):
        external_meters.meter_sensor(url)


def test_a_login_is_rejected_and_not_printed():
    with pytest.raises(Unavailable) as error:
        external_meters.meter_sensor("shelly://me:secret@192.0.2.7")
    assert "secret" not in str(error.value) and "takes no login" in str(error.value)


def test_the_variable_names_several_meters(tmp_path, plant, monkeypatch):
    log = tmp_path / "meter.csv"
    log.write_text(f"{time.time()},5.5\n")
    monkeypatch.setenv(external_meters.METERS_VARIABLE, f"csv://{log}  csv://{tmp_path}/none.csv nonsense")
    found = discover(plant({}).root)
    assert [(sensor.name, sensor.covers, sensor.source) for sensor in found.sensors] == [
        (f"meter:csv:{log}", "wall", "sensor")
    ]
    missing = dict(found.missing)
    assert "is no meter" in missing["meter:3"]
    assert "cannot be read" in missing[f"meter:csv:{tmp_path}/none.csv"]
