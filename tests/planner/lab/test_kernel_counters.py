"""What the emulator reads from the kernel, in the forms of both versions of control groups."""

from pathlib import Path

import pytest

from planner.errors import LabError
from planner.lab.kernel_counters import (
    CpuCounter,
    KernelCounters,
    KernelFile,
    MemoryCounters,
    cpu_seconds,
    network_bytes,
)

NET_DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       1    0    0    0     0          0         0      100       1    0    0    0     0       0          0
  eth0: 2000000    1500    0    0    0     0          0         0  3000000    2100    0    0    0     0       0          0
"""  # noqa: E501


def test_processor_time_of_version_1_and_of_version_2() -> None:
    assert cpu_seconds("1500000000\n", CpuCounter("cpuacct.usage", 1e-9)) == 1.5
    usage = CpuCounter("cpu.stat", 1e-6, "usage_usec")
    assert cpu_seconds("usage_usec 250000\nuser_usec 200000\n", usage) == 0.25
    with pytest.raises(LabError, match="cpu.stat has no usage_usec"):
        cpu_seconds("nr_periods 3\n", usage)


def test_bytes_of_an_interface_are_those_received_and_sent() -> None:
    assert network_bytes(NET_DEV, "eth0") == 5_000_000
    with pytest.raises(LabError, match="eth1: no such interface here"):
        network_bytes(NET_DEV, "eth1")


@pytest.mark.parametrize(
    ("stat", "used"),
    [
        ("cache 900\ninactive_file 1\ntotal_inactive_file 300\n", 700),  # version 1: with the groups inside
        ("anon 500\ninactive_file 400\n", 600),  # version 2
        ("anon 500\n", 1000),
        ("inactive_file 5000\n", 0),
    ],
)
def test_memory_is_counted_without_the_file_cache_that_nobody_uses(tmp_path: Path, stat: str, used: int) -> None:
    for name, text in (("usage", "7\n"), ("held", "1000\n"), ("stat", stat)):
        (tmp_path / name).write_text(text)
    memory = MemoryCounters(str(tmp_path / "held"), str(tmp_path / "stat"), 2000)
    sources = KernelCounters(CpuCounter(str(tmp_path / "usage"), 1e-9), "lo", memory)
    assert sources.memory_bytes() == used


def test_a_file_is_read_again_and_again(tmp_path: Path) -> None:
    path = tmp_path / "usage"
    path.write_text("1\n")
    watched = KernelFile(str(path))
    assert watched.text() == "1\n"
    path.write_text("22\n")
    assert watched.text() == "22\n"


def test_a_control_group_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"usage: No such file or directory; is the device's control group gone\?"):
        KernelFile(str(tmp_path / "usage"))
