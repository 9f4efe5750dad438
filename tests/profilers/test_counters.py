"""The eleven counters of Eq. 1 come from recorded trees; an unknown one is null with a reason."""

import pytest

from profilers import counters, procfs
from profilers.counters import Counters

PC = "".join(
    f"processor\t: {core}\nmodel name\t: AMD EPYC\ncpu MHz\t\t: {clock}.0\n\n" for core, clock in ((0, 2000), (1, 3000))
)


def test_a_tx2_has_all_eleven_counters(plant, tx2):
    found = Counters(plant(tx2))
    assert found.reasons == {}
    assert {name: read() for name, read in found.readers.items()} == pytest.approx(
        {
            "f_cpu": 2035.2e6,
            "f_gpu": 1300.5e6,
            "f_emc": 1866e6,
            "f_cp": 345.6e6,
            "u_cpu": 0.5,
            "u_gpu": 0.53,
            "u_cp": 0.0,
            "u_mem": 0.25,
            "m_gpu": 2048 * 1024,
            "m_swap": 1000 * 1024,
            "c_cp": 1.0,
        }
    )


def test_a_tx2_with_its_denver_cores_off_has_no_active_ones(plant, tx2):
    tx2["proc/cpuinfo"] = tx2["proc/cpuinfo"].partition("\n\n")[0]
    found = Counters(plant(tx2))
    assert found.readers["c_cp"]() == 0.0
    assert found.reasons == dict.fromkeys(("f_cp", "u_cp"), "no second cluster of cores is online")


def test_without_root_the_memory_controller_is_null_with_a_reason(plant, tx2):
    files = {name: text for name, text in tx2.items() if not name.startswith("sys/kernel/debug")}
    found = Counters(plant(files))
    assert "f_emc" not in found.readers and "m_gpu" not in found.readers
    assert "debugfs, for root only" in found.reasons["f_emc"]
    assert "/sys/kernel/debug/nvmap/iovmm/clients does not exist" in found.reasons["m_gpu"]


def test_a_pc_without_cpufreq_and_gpu(plant):
    found = Counters(
        plant(
            {
                "proc/cpuinfo": PC,
                "proc/stat": "cpu0 1 0 0 3 0 0 0 0\ncpu1 0 0 0 4 0 0 0 0\n",
                "proc/meminfo": "MemTotal: 100 kB\nMemFree: 50 kB\n",
            }
        )
    )
    assert found.readers["f_cpu"]() == 2500e6
    assert set(found.readers) == {"f_cpu", "u_cpu"}
    assert "no MemAvailable" in found.reasons["u_mem"] and "no SwapTotal" in found.reasons["m_swap"]
    assert set(found.readers) | set(found.reasons) == set(counters.UNITS)


def test_a_machine_without_listed_cores_has_reasons(plant):
    found = Counters(plant({"proc/cpuinfo": "vendor_id\t: IBM/S390\n"}))
    assert found.reasons["f_cpu"] == found.reasons["u_cpu"] == "/proc/cpuinfo lists no core"


def test_load_is_the_busy_share_between_two_reads(plant):
    tree = plant({"proc/stat": "cpu0 100 10 10 800 80 0 0 0 0 0\ncpu1 0 0 0 1000 0 0 0 0 0 0\n"})
    load = procfs.Load(tree, (0, 1))
    assert load() == pytest.approx(120 / 2000)
    plant({"proc/stat": "cpu0 200 10 10 800 80 0 0 0 0 0\ncpu1 50 0 0 1040 10 0 0 0 0 0\n"})
    assert load() == pytest.approx(150 / 200)
    assert load() == pytest.approx(150 / 200)  # no tick since: what it was


def test_at_most_eight_clocks_are_read(plant, monkeypatch):
    files = {}
    for core in range(100):
        folder = f"sys/devices/system/cpu/cpu{core}/cpufreq/"
        files.update({folder + "related_cpus": str(core), folder + "scaling_cur_freq": "1000000"})
    tree = plant(files)
    read = procfs.clock(tree, tuple(range(100)))
    names = []
    monkeypatch.setattr(tree, "number", lambda name: names.append(name) or 1000000)
    assert read() == pytest.approx(1e9)
    assert 6 <= len(names) <= procfs.MAX_CLOCKS
