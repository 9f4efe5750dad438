"""Facts of Macs and of FreeBSD, from what their programs print."""

import os

import pytest

from profilers import bsd, bsd_counters, cpu_quota, device_facts, mixed_precision, running_program
from profilers.counters import Counters
from profilers.file_tree import FileTree, Unavailable
from profilers.sensors import polling
from tests.profilers import macs
from tests.running import HANG_S


@pytest.fixture(autouse=True)
def _fresh():
    bsd.host.cache_clear()
    yield
    bsd.host.cache_clear()


@pytest.fixture
def a_mac(tmp_path, monkeypatch):
    """The programs of a Mac come first, and Linux's files are not there."""
    monkeypatch.setenv("PATH", f"{macs.plant(tmp_path / 'programs')}:{os.environ['PATH']}")
    monkeypatch.setattr(FileTree, "path", lambda self, name: str(tmp_path / "hidden" / name))
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(running_program, "SILENCE_S", HANG_S)  # on a busy machine a program is slow to start
    monkeypatch.setattr(polling, "ANSWER_LIMIT_S", HANG_S)


@pytest.mark.parametrize(
    "text, host",
    [
        (
            macs.APPLE_SYSCTL,
            bsd.Host(
                "Mac14,9", "Apple M2 Pro", "macOS 14.5", "0A1B2C3D-1111-2222-3333-444455556666", 16 << 30, 6, True
            ),
        ),
        (
            macs.INTEL_SYSCTL,
            bsd.Host(
                "iMac19,1", "Intel(R) Core(TM) i5-9600K CPU @ 3.70GHz", "macOS 13.6.7",
                "9F8E7D6C-1111-2222-3333-444455556666", 32 << 30,
            ),
        ),
        (macs.FREEBSD_SYSCTL, bsd.Host(None, "AMD EPYC 7402P 24-Core Processor", total_bytes=8520495104)),
        ("", bsd.Host()),
        ("hw.memsize: \nno line of sysctl\n", bsd.Host()),
    ],
)  # fmt: skip
def test_a_machine_is_told_by_sysctl(text, host):
    assert bsd.parse_host(bsd.parse_sysctl(text)) == host


def test_free_speculative_and_inactive_pages_are_available():
    assert bsd.parse_vm_stat(macs.VM_STAT) == (10000 + 5000 + 420000) * 16384
    assert bsd.parse_vm_stat("Mach Virtual Memory Statistics: (page size of 4096 bytes)\nPages free: 7.\n") == 7 * 4096


@pytest.mark.parametrize(
    "text", ["", "Pages free: 7.\n", "procs -----------memory---------- ---swap--\n r  b   swpd\n"]
)
def test_what_vm_stat_of_another_system_prints_is_unknown(text):
    assert bsd.parse_vm_stat(text) is None


@pytest.mark.parametrize("text, used_bytes", [("used = 1063.75M", 1063.75 * 2**20), ("used = 1.50G", 1.5 * 2**30)])
def test_swap_in_use(text, used_bytes):
    assert bsd.parse_swap(f"total = 2048.00M  {text}  free = 984.25M  (encrypted)") == used_bytes
    assert bsd.parse_swap("") is None


@pytest.mark.parametrize("text, shares", [(macs.MAC_IOSTAT, [0.45, 1.0]), (macs.FREEBSD_IOSTAT, [0.25])])
def test_busy_shares_without_that_since_the_boot(text, shares):
    busy = bsd_counters.Busy()
    found = [busy(line) for line in (text + text).splitlines()]  # headings are repeated
    assert [share for share in found if share is not None] == pytest.approx(shares + shares)


@pytest.mark.usefixtures("a_mac")
def test_the_facts_of_a_mac():
    found = device_facts.collect(())
    assert (found.board, found.processor.name) == ("Mac14,9", "Apple M2 Pro")
    assert found.system.startswith("macOS 14.5, ")
    assert found.memory == (16 << 30, 435000 * 16384)
    assert found.processor.usable_cores == cpu_quota.affinity() == 6
    assert found.boot_id == "0A1B2C3D-1111-2222-3333-444455556666"
    assert found.precisions == (mixed_precision.BF16,)


def test_the_memory_of_freebsd_is_told_by_sysctl_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(macs.plant(tmp_path, macs.FREEBSD_SYSCTL, vm_stat="exit 1\n")) + ":/bin:/usr/bin")
    assert bsd.memory() == (8520495104, 1500000 * 4096)


def test_where_no_program_tells_posix_does(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(FileTree, "path", lambda self, name: str(tmp_path / name))
    monkeypatch.delitem(os.sysconf_names, "SC_AVPHYS_PAGES")
    found = device_facts.memory(FileTree("/"), FileTree("/"))
    assert found.total_bytes == found.available_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.usefixtures("a_mac")
def test_counters_of_a_mac():
    counters = Counters(FileTree("/"))
    try:
        assert counters.readers["u_cpu"]() in (pytest.approx(0.45), 1.0)
        assert counters.readers["u_mem"]() == pytest.approx(1 - 435000 * 16384 / (16 << 30))
        assert counters.readers["m_swap"]() == 1063.75 * 2**20
        assert "exist" in counters.reasons["f_cpu"]
    finally:
        counters.close()


def test_counters_without_any_of_these_programs_have_reasons(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    readers = bsd_counters.BsdCounters()
    for name, reader in readers.candidates():
        with pytest.raises(Unavailable, match="iostat cannot be run" if name == "u_cpu" else "neither vm_stat"):
            reader()
    readers.close()
