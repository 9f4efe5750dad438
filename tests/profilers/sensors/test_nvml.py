"""NVML is read through a stand-in library in C: two GPUs, the second without an energy counter."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers.file_tree import FileTree, Unavailable
from profilers.sensors import nvml
from profilers.sensors.nvml import CUDA_VARIABLE, visible_gpus

SOURCE = r"""
#include <string.h>
#define NOT_SUPPORTED 3
typedef struct { unsigned gpu, memory; } utilisation;
typedef struct { unsigned long long total, free, used; } memory;
static long gpus[2] = {0, 1};
static unsigned long long millijoules = 5000000000ULL;
int nvmlInit_v2(void) { return INIT; }
const char *nvmlErrorString(int code) {
    return code == NOT_SUPPORTED ? "Not Supported" : "Driver Not Loaded";
}
int nvmlDeviceGetCount_v2(unsigned *count) { *count = COUNT; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = &gpus[index]; return 0; }
int nvmlDeviceGetName(void *gpu, char *name, unsigned size) { strncpy(name, "Fake GPU", size); return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *gpu, unsigned long long *mj) {
    if (*(long *)gpu) return NOT_SUPPORTED;
    *mj = millijoules += STEP;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts) { *milliwatts = 75500; return POWER; }
int nvmlDeviceGetUUID(void *gpu, char *uuid, unsigned size) {
    strncpy(uuid, *(long *)gpu ? "GPU-bbbb-1" : "GPU-aaaa-0", size);
    return 0;
}
int nvmlDeviceGetClockInfo(void *gpu, int kind, unsigned *mhz) { *mhz = kind ? 5001 : 1455; return 0; }
int nvmlDeviceGetUtilizationRates(void *gpu, utilisation *rates) {
    rates->gpu = 42; rates->memory = 7;
    return 0;
}
#ifdef MEMORY
int nvmlDeviceGetMemoryInfo(void *gpu, memory *info) { info->used = 3ULL << 30; return 0; }
#endif
"""


@pytest.fixture(autouse=True)
def no_setting(monkeypatch):
    monkeypatch.delenv(CUDA_VARIABLE, raising=False)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")

    def build(**defines):
        folder = tmp_path_factory.mktemp("nvml")
        values = {"INIT": 0, "STEP": 1500, "POWER": 0, "COUNT": 2, **defines}
        (folder / "nvml.c").write_text(SOURCE)
        subprocess.run(
            [
                compiler,
                "-shared",
                "-fPIC",
                *(f"-D{name}={value}" for name, value in values.items()),
                "-o",
                str(folder / "nvml.so"),
                str(folder / "nvml.c"),
            ],
            check=True,
            capture_output=True,
        )
        return str(folder / "nvml.so")

    return build


@pytest.fixture(scope="module")
def library(compiled):
    return compiled(MEMORY=1)


def test_joules_are_read_from_an_energy_counter_and_watts_elsewhere(library):
    first, second = nvml.discover(FileTree("/"), library).sensors
    assert (first.name, first.covers, first.source) == ("nvml:0", "gpu", "counter")
    assert first.read() - first.read() == pytest.approx(-1.5)
    assert (second.name, second.covers, second.source, second.read()) == ("nvml:1", "gpu", "sensor", 75.5)


def test_the_counters_are_those_of_the_first_gpu(library):
    assert {name: read() for name, read in nvml.candidates(FileTree("/"), library)} == pytest.approx(
        {"f_gpu": 1455e6, "f_emc": 5001e6, "u_gpu": 0.42, "m_gpu": 3 << 30}
    )
    assert [gpu.name() for gpu in nvml.gpus(FileTree("/"), library)] == ["Fake GPU", "Fake GPU"]


def test_a_function_missing_in_the_driver_is_a_reason(compiled):
    readers = dict(nvml.candidates(FileTree("/"), compiled()))
    with pytest.raises(Unavailable, match="this driver has no nvmlDeviceGetMemoryInfo"):
        readers["m_gpu"]()


def test_an_error_carries_the_message_of_the_library(compiled):
    found = nvml.discover(FileTree("/"), compiled(INIT=9))
    assert found == ((), (("nvml", "nvmlInit_v2: Driver Not Loaded"),))


def test_without_a_driver_every_counter_has_the_reason():
    for _, read in nvml.candidates(FileTree("/"), "libno-such.so.1"):
        with pytest.raises(Unavailable, match="no NVIDIA driver here"):
            read()


def test_an_emulated_device_does_not_read_the_gpu_of_its_host(tmp_path, library):
    assert nvml.discover(FileTree(tmp_path), library).sensors == ()


def test_an_energy_counter_that_stands_still_is_not_used(compiled, monkeypatch):
    monkeypatch.setattr(nvml, "STILL_S", 0.05)
    first, _ = nvml.discover(FileTree("/"), compiled(STEP=0)).sensors
    assert (first.source, first.read()) == ("sensor", 75.5)


@pytest.mark.parametrize("setting, names", [("1", ["nvml:1"]), ("1,0", ["nvml:1", "nvml:0"]), ("GPU-bbbb", ["nvml:1"])])
def test_only_gpus_that_cuda_may_use_are_read(library, monkeypatch, setting, names):
    monkeypatch.setenv(CUDA_VARIABLE, setting)
    assert [sensor.name for sensor in nvml.discover(FileTree("/"), library).sensors] == names
    assert len(nvml.installed(FileTree("/"), library)) == 2


def test_hiding_all_gpus_is_a_reason(library, monkeypatch):
    monkeypatch.setenv(CUDA_VARIABLE, "-1")
    reason = "CUDA_VISIBLE_DEVICES=-1 leaves none of 2 GPUs"
    assert nvml.discover(FileTree("/"), library).missing == (("nvml", reason),)
    with pytest.raises(Unavailable, match=reason):
        dict(nvml.candidates(FileTree("/"), library))["u_gpu"]()


# -- CUDA_VISIBLE_DEVICES ----------------------------------------------------------------------


UUIDS = ["GPU-aaaa1111-1", "GPU-aaaa2222-2", "GPU-bbbb3333-3"]


@pytest.mark.parametrize(
    "setting, indices",
    [
        (None, (0, 1, 2)),
        ("", ()),
        ("1", (1,)),
        (" 1 , 2 ", (1, 2)),
        ("1,1", (1,)),
        ("0,7,1", (0,)),
        ("0,-1,1", (0,)),
        ("GPU-bbbb", (2,)),
        ("GPU-bbbb3333-3,0", (2, 0)),
        ("GPU-aaaa", ()),
        ("GPU-aaaa2,GPU-cccc,0", (1,)),
        ("MIG-GPU-bbbb3333-3/1/0", (2,)),
    ],
)
def test_a_setting_selects_these_gpus(setting, indices):
    assert visible_gpus(UUIDS, setting) == indices


def test_a_gpu_without_a_uuid_is_named_by_its_index_only():
    assert visible_gpus(["", ""], "1") == (1,)
    assert visible_gpus(["", ""], "GPU-") == ()


@given(st.text(alphabet="0123456789,-GPUMIGab/ "))
def test_any_setting_selects_existing_gpus_once(setting):
    found = visible_gpus(UUIDS, setting)
    assert set(found) <= {0, 1, 2} and len(set(found)) == len(found)
