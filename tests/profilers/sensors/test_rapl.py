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


@pytest.mark.parametrize("vendor, dies", [("AuthenticAMD", "0"), (None, "0"), ("GenuineIntel", "01")])
def test_a_die_counts_if_it_does_not_repeat_the_counter_of_its_package(plant, vendor, dies):
    files = {**zone("package-0-die-0", "intel-rapl:0", 0), **zone("package-0-die-1", "intel-rapl:1", 0)}
    files.update({"proc/cpuinfo": f"vendor_id\t: {vendor}\n"} if vendor else {})
    found = rapl.discover(plant(files))
    assert [sensor.name for sensor in found.sensors] == [f"rapl:package-0-die-{die}" for die in dies]
    reasons = [reason for _, reason in found.missing]
    assert reasons == ["package-0-die-1 repeats the counter of all of package-0"] * (dies == "0")


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


def test_a_machine_that_was_suspended_has_used_no_range_of_its_counter(plant):
    limit = 262_143_328_850
    tree = plant(zone("package-0", "intel-rapl:0", 200_000_000_000, limit))
    now_s = iter([0.0, 1.0, 1.1]).__next__
    counter = rapl.Zone(tree, CAP + "intel-rapl:0", clock=now_s)
    plant({CAP + "intel-rapl:0/energy_uj": 200_010_000_000})
    before_j = counter.joules()
    plant({CAP + "intel-rapl:0/energy_uj": 30_000_000})
    assert counter.joules() < before_j


@pytest.mark.parametrize("used_j, asleep_s", [(3600, 3600.0), (3600, 0.0), (60, 120.0), (12, 5.0)])
def test_joules_counted_while_the_machine_was_suspended_are_of_no_window(plant, used_j, asleep_s):
    tree = plant(zone("package-0", "intel-rapl:0", 0))
    now_s, suspended_s = iter([0.0, 1.0, 1.1, 2.1]).__next__, iter([3.0, 3.0, 3.0 + asleep_s, 3.0 + asleep_s]).__next__
    counter, read = rapl.Zone(tree, CAP + "intel-rapl:0", now_s, suspended_s), []
    for joules in (20, 20 + used_j, 40 + used_j):
        plant({CAP + "intel-rapl:0/energy_uj": joules * 1_000_000})
        read.append(counter.joules())
    assert read[1] < read[0] and read[2] - read[1] == pytest.approx(20.0)


def test_a_range_that_was_used_up_while_nobody_read_still_counts(plant):
    tree = plant(zone("package-0", "intel-rapl:0", 260_000_000_000))
    now_s = iter([0.0, 100.0]).__next__
    counter = rapl.Zone(tree, CAP + "intel-rapl:0", clock=now_s)
    plant({CAP + "intel-rapl:0/energy_uj": 1_000_000_000})
    assert counter.joules() == pytest.approx(3143.32885)


@pytest.mark.parametrize("bus, covers", [("0000:00:02.0", "board"), ("0000:03:00.0", "rail")])
def test_psys_is_the_board_beside_the_processors_own_graphics_only(plant, bus, covers):
    display = {f"sys/bus/pci/devices/{bus}/class": "0x030000\n"}
    [found] = rapl.discover(plant({**zone("psys", "intel-rapl:1", 0), **display})).sensors
    assert found.covers == covers


def test_a_zone_of_no_known_kind_belongs_to_no_sum(plant):
    [found] = rapl.discover(plant(zone("fabric", "intel-rapl:1", 0))).sensors
    assert found.covers == "rail"
