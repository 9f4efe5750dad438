"""Energy counters of powercap have a coverage, wrap around, and are not counted twice."""

import pytest

from profilers.sensors import rapl

CAP = "sys/class/powercap/"


def zone(name, path, microjoules, limit=262143328850):
    return {
        CAP + path + "/name": name + "\n",
        CAP + path + "/energy_uj": microjoules,
        CAP + path + "/max_energy_range_uj": limit,
    }


def test_a_package_includes_its_memory_but_not_core_and_uncore(plant):
    files = {
        **zone("package-0", "intel-rapl:0", 1000),
        **zone("core", "intel-rapl:0:0", 500),
        **zone("dram", "intel-rapl:0:2", 7000),
        **zone("package-0", "intel-rapl-mmio:0", 1000),
    }
    found = rapl.discover(plant(files))
    [package] = found.sensors
    assert (package.name, package.covers, package.counts_joules) == ("rapl:package-0+dram", "cpu", True)
    plant(
        {
            CAP + "intel-rapl:0/energy_uj": 3001000,
            CAP + "intel-rapl:0:0/energy_uj": 2000000,
            CAP + "intel-rapl:0:2/energy_uj": 1007000,
        }
    )
    assert package.read() == pytest.approx(4.0)


def test_two_packages_and_psys(plant):
    files = {
        **zone("package-0", "intel-rapl:0", 0),
        **zone("package-1", "intel-rapl:1", 0),
        **zone("psys", "intel-rapl:2", 0),
    }
    found = rapl.discover(plant(files)).sensors
    assert [(sensor.name, sensor.covers) for sensor in found] == [
        ("rapl:package-0", "cpu"),
        ("rapl:package-1", "cpu"),
        ("rapl:psys", "board"),
    ]


def test_a_counter_that_wraps_continues(plant):
    [package] = rapl.discover(plant(zone("package-0", "intel-rapl:0", 9_000_000, limit=10_000_000))).sensors
    read = []
    for microjoules in (9_500_000, 500_000, 800_000, 9_900_000, 100_000):
        plant({CAP + "intel-rapl:0/energy_uj": microjoules})
        read.append(package.read())
    assert read == pytest.approx([0.5, 1.5, 1.8, 10.9, 11.1])


def test_a_small_decrease_is_not_a_wrap(plant):
    [package] = rapl.discover(plant(zone("package-0", "intel-rapl:0", 9_000_000))).sensors
    plant({CAP + "intel-rapl:0/energy_uj": 7_500_000})
    assert package.read() == pytest.approx(-1.5)


def test_a_counter_that_is_absent_has_a_reason(plant, tmp_path):
    tree = plant(zone("package-0", "intel-rapl:0", 0))
    (tmp_path / CAP / "intel-rapl:0/energy_uj").unlink()
    found = rapl.discover(tree)
    assert found.sensors == () and "energy_uj does not exist" in found.missing[0][1]


def test_psys_beside_a_discrete_gpu_belongs_to_no_sum(plant, monkeypatch):
    monkeypatch.setattr(rapl.nvml, "installed", lambda tree: ("a GPU",))
    found = rapl.discover(plant({**zone("package-0", "intel-rapl:0", 0), **zone("psys", "intel-rapl:1", 0)})).sensors
    assert [(sensor.name, sensor.covers) for sensor in found] == [("rapl:package-0", "cpu"), ("rapl:psys", "rail")]
