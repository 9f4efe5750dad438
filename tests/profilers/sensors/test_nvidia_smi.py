"""nvidia-smi's report is parsed in every recorded schema, and read where NVML is missing."""

import contextlib
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers.file_tree import Unavailable
from profilers.sensors import nvidia_smi
from profilers.sensors.visible_gpus import CUDA_VARIABLE

#: Watts in some recorded reports.
RECORDED = {
    "a100-sxm4-v12": 67.03,
    "gtx-1660-ti": 8.93,
    "quadro-p2000-v12": 4.61,
    "quadro-p400": None,
    "rtx-3060-v12": 11.60,
    "rtx-3080-v12": 22.78,
    "rtx-4000-sff-ada-v13": 8.81,
    "tesla-t4": 26.78,
}
REPORT = """<?xml version="1.0" ?><!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd"><nvidia_smi_log>
<gpu id="0"><product_name>A</product_name><uuid>GPU-a</uuid>
<power_readings><power_draw>{} W</power_draw></power_readings></gpu>
<gpu id="1"><product_name>B</product_name><uuid>GPU-b</uuid>
<gpu_power_readings><power_draw>N/A</power_draw></gpu_power_readings></gpu></nvidia_smi_log>"""


@pytest.fixture(autouse=True)
def no_setting(monkeypatch):
    monkeypatch.delenv(CUDA_VARIABLE, raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)


# -- parse -----------------------------------------------------------------------------------------


def test_every_recorded_report_is_parsed(shared_data):
    paths = sorted((shared_data / "nvidia-smi").glob("*.xml"))
    assert len(paths) >= len(RECORDED)
    for path in paths:
        for gpu in nvidia_smi.parse(path.read_text()):
            assert (gpu.watts is None) == (gpu.reason is not None), path.name


@pytest.mark.parametrize(
    "power, watts",
    [
        ("<power_readings><power_draw>8.93 W</power_draw></power_readings>", 8.93),
        ("<gpu_power_readings><power_draw>67.03 W</power_draw></gpu_power_readings>", 67.03),
        ("<gpu_power_readings><instant_power_draw>12 W</instant_power_draw></gpu_power_readings>", 12.0),
        (
            "<gpu_power_readings><average_power_draw>N/A</average_power_draw>"
            "<instant_power_draw>12 W</instant_power_draw></gpu_power_readings>",
            12.0,
        ),
        ("<module_power_readings><power_draw>500 W</power_draw></module_power_readings>", None),
        (
            "<gpu_power_readings><power_draw>Requested functionality has been deprecated</power_draw>"
            "</gpu_power_readings>",
            None,
        ),
        ("<gpu_power_readings><power_draw>12 kW</power_draw></gpu_power_readings>", None),
        ("", None),
    ],
)
def test_power_in_every_schema(power, watts):
    (gpu,) = nvidia_smi.parse(f"<nvidia_smi_log><gpu>{power}</gpu></nvidia_smi_log>")
    assert gpu.watts == watts
    assert (gpu.reason is None) == (watts is not None)


ENTITY = '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'


@pytest.mark.parametrize("text", ["", "no devices were found", "<a>", ENTITY, pytest.param("<" * 5000000, id="huge")])
def test_other_text_than_a_report_is_unavailable(text):
    with pytest.raises(Unavailable, match="nvidia-smi's answer"):
        nvidia_smi.parse(text)


@given(st.text())
def test_any_text_parses_or_raises_unavailable(text):
    with contextlib.suppress(Unavailable):
        nvidia_smi.parse(text)


# -- sensors ---------------------------------------------------------------------------------------


@pytest.fixture
def program(tmp_path):
    """A stand-in program that counts its runs and states 1 W more each time."""
    path = tmp_path / "nvidia-smi"
    path.write_text(
        f"#!{sys.executable}\nimport os, sys\nassert sys.argv[1:] == ['-q', '-x']\n"
        f"runs = {str(tmp_path / 'runs')!r}\nopen(runs, 'a').write('x')\n"
        f"print({REPORT!r}.format(10 + os.path.getsize(runs)))\n"
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def without_library(monkeypatch, program):
    monkeypatch.setattr(nvidia_smi, "PROGRAMS", (str(program),))
    monkeypatch.setattr(nvidia_smi, "_library_loads", lambda: False)


class OwnTree:
    is_own = True


def test_nvidia_smi_replaces_a_missing_library(without_library, program):
    found = nvidia_smi.discover(OwnTree())
    (sensor,) = found.sensors
    assert (sensor.name, sensor.covers, sensor.source) == ("nvidia-smi:0", "gpu", "sensor")
    assert found.missing == (("nvidia-smi:1", "nvidia-smi says 'N/A' instead of watts"),)


def test_the_program_runs_once_a_second_at_most(without_library, program):
    (sensor,) = nvidia_smi.discover(OwnTree()).sensors
    runs = program.parent / "runs"
    before = runs.stat().st_size
    began_s = time.monotonic()
    assert sensor.read() == 11 + before
    for _ in range(1000):
        sensor.read()
    sensor.close()
    assert runs.stat().st_size - before <= 1 + int(time.monotonic() - began_s)


def test_the_program_is_not_used_beside_nvml_or_with_another_file_tree(without_library, program, monkeypatch, plant):
    assert nvidia_smi.discover(plant({})) == ((), ())
    monkeypatch.setattr(nvidia_smi, "_library_loads", lambda: True)
    assert nvidia_smi.discover(OwnTree()) == ((), ())
    monkeypatch.setattr(nvidia_smi, "PROGRAMS", ("no-such-program",))
    monkeypatch.setattr(nvidia_smi, "_library_loads", lambda: False)
    assert nvidia_smi.discover(OwnTree()) == ((), ())
    assert not (program.parent / "runs").exists()


def test_a_failing_program_has_a_reason(tmp_path):
    path = tmp_path / "nvidia-smi"
    path.write_text("#!/bin/sh\necho NVIDIA-SMI has failed\nexit 9\n")
    path.chmod(0o755)
    with pytest.raises(Unavailable, match="nvidia-smi failed: NVIDIA-SMI has failed"):
        nvidia_smi.run_program(str(path))
    with pytest.raises(Unavailable, match="cannot be run"):
        nvidia_smi.run_program(str(tmp_path / "none"))


def test_the_report_around_a_lost_gpu_is_read(tmp_path):
    path = tmp_path / "nvidia-smi"
    (tmp_path / "report").write_text("GPU 2: lost\n" + REPORT.format(10).replace("N/A", "GPU is lost") + "\nReboot.")
    path.write_text(f"#!/bin/sh\ncat '{tmp_path}/report'\nexit 15\n")
    path.chmod(0o755)
    healthy, lost = nvidia_smi.run_program(str(path))
    assert (healthy.watts, lost.reason) == (10.0, "nvidia-smi says 'GPU is lost' instead of watts")


def test_hiding_all_gpus_is_a_reason(monkeypatch):
    monkeypatch.setenv(CUDA_VARIABLE, "GPU-c")
    found = nvidia_smi.polled_sensors(lambda: nvidia_smi.parse(REPORT.format(10)))
    assert found == ((), (("nvidia-smi", "CUDA_VISIBLE_DEVICES=GPU-c leaves none of 2 GPUs"),))


def test_gpus_that_cuda_numbers_otherwise_have_a_reason(monkeypatch):
    monkeypatch.setenv(CUDA_VARIABLE, "1")
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "FASTEST_FIRST")
    found = nvidia_smi.polled_sensors(lambda: nvidia_smi.parse(REPORT.format(10)))
    assert found.sensors == () and "numbers GPUs otherwise than their sensors" in found.missing[0][1]


def test_gpus_outside_cuda_visible_devices_are_left_out(monkeypatch):
    monkeypatch.setenv(CUDA_VARIABLE, "GPU-b")
    found = nvidia_smi.polled_sensors(lambda: nvidia_smi.parse(REPORT.format(10)))
    assert [name for name, _ in found.missing] == ["nvidia-smi:1"] and found.sensors == ()
