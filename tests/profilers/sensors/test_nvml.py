"""NVML is read through a stand-in library in C: two GPUs, the second without an energy counter.

LOST is the number of a GPU that has fallen off the bus; MIG divides the second into two slices.
"""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers.file_tree import FileTree, Unavailable
from profilers.sensors import nvml
from profilers.sensors.visible_gpus import CUDA_VARIABLE, ORDER_VARIABLE, numbered_otherwise, visible_gpus

SOURCE = r"""
#include <string.h>
#define NOT_SUPPORTED 3
typedef struct { unsigned gpu, memory; } utilisation;
typedef struct { unsigned long long total, free, used; } memory;
static long gpus[2] = {0, 1};
static unsigned long long millijoules = 5000000000ULL;
int nvmlInit_v2(void) { return INIT; }
const char *nvmlErrorString(int code) {
    return code == NOT_SUPPORTED ? "Not Supported" : code == 15 ? "GPU is lost" : "Driver Not Loaded";
}
int nvmlDeviceGetCount_v2(unsigned *count) { *count = COUNT; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
    if (index == LOST) return 15;
    *handle = &gpus[index];
    return 0;
}
int nvmlDeviceGetName(void *gpu, char *name, unsigned size) { strncpy(name, "Fake GPU", size); return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *gpu, unsigned long long *mj) {
    if (*(long *)gpu) return NOT_SUPPORTED;
    *mj = millijoules += STEP;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *gpu, unsigned *milliwatts) { *milliwatts = 75500; return POWER; }
int nvmlDeviceGetUUID(void *gpu, char *uuid, unsigned size) {
    static const char *names[] = {"GPU-aaaa-0", "GPU-bbbb-1", "MIG-cccc-2", "MIG-dddd-3"};
    strncpy(uuid, names[*(long *)gpu], size);
    return 0;
}
#ifdef MIG
static long slices[2] = {2, 3};
int nvmlDeviceGetMaxMigDeviceCount(void *gpu, unsigned *count) { *count = *(long *)gpu ? 7 : 0; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *gpu, unsigned index, void **slice) {
    if (index > 1) return NOT_SUPPORTED;
    *slice = &slices[index];
    return 0;
}
#endif
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
    monkeypatch.delenv(ORDER_VARIABLE, raising=False)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")

    def build(**defines):
        folder = tmp_path_factory.mktemp("nvml")
        values = {"INIT": 0, "STEP": 1500, "POWER": 0, "COUNT": 2, "LOST": 99, **defines}
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


@pytest.mark.parametrize("setting, order, known", [
    ("1", "FASTEST_FIRST", False), ("0,GPU-bbbb", "FASTEST_FIRST", False), ("1", "PCI_BUS_ID", True),
    ("GPU-bbbb", "FASTEST_FIRST", True), (None, "FASTEST_FIRST", True), ("1", None, True),
])  # fmt: skip
def test_an_index_of_cuda_s_own_order_names_no_sensor(setting, order, known):
    reason = numbered_otherwise(2, setting, order)
    assert (reason is None) is known and numbered_otherwise(1, setting, order) is None


def test_gpus_that_cuda_numbers_otherwise_have_a_reason(library, monkeypatch):
    monkeypatch.setenv(CUDA_VARIABLE, "1")
    monkeypatch.setenv(ORDER_VARIABLE, "FASTEST_FIRST")
    [(name, reason)] = nvml.discover(FileTree("/"), library).missing
    assert name == "nvml" and reason.endswith("set CUDA_DEVICE_ORDER=PCI_BUS_ID, or give UUIDs")


def test_hiding_all_gpus_is_a_reason(library, monkeypatch):
    monkeypatch.setenv(CUDA_VARIABLE, "-1")
    reason = "CUDA_VISIBLE_DEVICES=-1 leaves none of 2 GPUs"
    assert nvml.discover(FileTree("/"), library).missing == (("nvml", reason),)
    with pytest.raises(Unavailable, match=reason):
        dict(nvml.candidates(FileTree("/"), library))["u_gpu"]()


@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_gpu_is_named_and_the_other_keeps_its_figures(compiled, lost):
    library = compiled(LOST=lost, MEMORY=1)
    found = nvml.discover(FileTree("/"), library)
    assert [sensor.name for sensor in found.sensors] == [f"nvml:{1 - lost}"]
    assert found.missing == ((f"nvml:{lost}", "nvmlDeviceGetHandleByIndex_v2: GPU is lost"),)
    assert dict(nvml.candidates(FileTree("/"), library))["u_gpu"]() == pytest.approx(0.42)
    assert [gpu.index for gpu in nvml.gpus(FileTree("/"), library)] == [1 - lost]


@pytest.mark.parametrize("setting", ["1", "GPU-bbbb"])
def test_a_setting_that_leaves_the_lost_gpu_out_is_honoured(compiled, monkeypatch, setting):
    monkeypatch.setenv(CUDA_VARIABLE, setting)
    found = nvml.discover(FileTree("/"), compiled(LOST=0))
    assert ([sensor.name for sensor in found.sensors], found.missing) == (["nvml:1"], ())


@pytest.mark.parametrize("setting", ["0", "GPU-aaaa"])
def test_a_setting_that_leaves_the_lost_gpu_alone_says_so(compiled, monkeypatch, setting):
    monkeypatch.setenv(CUDA_VARIABLE, setting)
    library = compiled(LOST=0)
    found = nvml.discover(FileTree("/"), library)
    assert found.sensors == () and "GPU is lost" in found.missing[0][1]
    with pytest.raises(Unavailable, match="GPU 0: nvmlDeviceGetHandleByIndex_v2: GPU is lost"):
        nvml.gpus(FileTree("/"), library)


@pytest.mark.parametrize("setting", ["MIG-cccc-2", "MIG-dddd", "MIG-cccc-2,MIG-dddd-3", "MIG-GPU-bbbb-1/1/0"])
def test_a_slice_stands_for_its_gpu(compiled, monkeypatch, setting):
    monkeypatch.setenv(CUDA_VARIABLE, setting)
    found = nvml.discover(FileTree("/"), compiled(MIG=1))
    assert ([sensor.name for sensor in found.sensors], found.missing) == (["nvml:1"], ())


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


def test_a_slice_of_the_only_gpu_needs_no_list_of_slices():
    assert visible_gpus(UUIDS[:1], "MIG-cccc") == (0,)
    assert visible_gpus(UUIDS, "MIG-cccc") == ()


def test_a_gpu_without_a_uuid_is_named_by_its_index_only():
    assert visible_gpus(["", ""], "1") == (1,)
    assert visible_gpus(["", ""], "GPU-") == ()


@given(st.text(alphabet="0123456789,-GPUMIGab/ "))
def test_any_setting_selects_existing_gpus_once(setting):
    found = visible_gpus(UUIDS, setting)
    assert set(found) <= {0, 1, 2} and len(set(found)) == len(found)
