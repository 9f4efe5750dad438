"""Peaks of this process, and the limits of control groups of both versions, as recorded."""

import mmap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from profilers import process_memory
from profilers.file_tree import FileTree, Unavailable
from profilers.process_memory import MemoryLimit, PeakMemory

MIB = 1 << 20
V2_MOUNT = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNT = "36 25 0:31 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"

Plant = Callable[..., FileTree]


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    def build(files: dict[str, object]) -> FileTree:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(str(text))
        return FileTree(str(tmp_path))

    return build


def group(folder: str, most: object, used: int, cache: int) -> dict[str, object]:
    """The files of a group of version 2."""
    return {
        f"sys/fs/cgroup{folder}/memory.max": most,
        f"sys/fs/cgroup{folder}/memory.current": used,
        f"sys/fs/cgroup{folder}/memory.stat": f"anon {used - cache}\ninactive_file {cache}\n",
    }


def test_version_2_takes_the_tightest_of_all_ancestors_and_counts_no_cache(plant: Plant) -> None:
    tree = plant(
        {
            "proc/self/cgroup": "0::/user.slice/job.scope\n",
            "proc/self/mountinfo": V2_MOUNT,
            **group("/user.slice/job.scope", 1000, 300, 100),
            **group("/user.slice", 2000, 1950, 50),
        }
    )
    assert process_memory.limit(tree) == MemoryLimit(1000, 100)


def test_version_1_reads_its_own_names_and_takes_the_greatest_number_for_no_limit(plant: Plant) -> None:
    files: dict[str, object] = {
        "proc/self/cgroup": "4:memory:/docker/abc\n",
        "proc/self/mountinfo": V1_MOUNT,
        "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": 4096,
        "sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": 1024,
        "sys/fs/cgroup/memory/docker/abc/memory.stat": "cache 9\ntotal_inactive_file 24\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": 9223372036854771712,
        "sys/fs/cgroup/memory/memory.usage_in_bytes": 10**9,
        "sys/fs/cgroup/memory/memory.stat": "total_inactive_file 0\n",
    }
    assert process_memory.limit(plant(files)) == MemoryLimit(4096, 4096 - 1000)


STATUS = "Name:\tpython\nVmHWM:\t{peak} kB\nVmRSS:\t{resident} kB\nRssAnon:\t{own} kB\nRssFile:\t1 kB\n"


def test_the_peak_is_what_the_process_had_of_its_own_and_how_far_it_grew(plant: Plant, tmp_path: Path) -> None:
    tree = plant({"proc/self/status": STATUS.format(peak=900, resident=300, own=100)})
    clear_refs = tmp_path / "clear_refs"
    probe = PeakMemory(tree, str(clear_refs))
    assert clear_refs.read_text() == "5"
    plant({"proc/self/status": STATUS.format(peak=750, resident=310, own=110)})
    assert probe.bytes() == (100 + 450) * 1024


def test_where_a_peak_cannot_be_forgotten_only_a_new_one_is_seen(plant: Plant, tmp_path: Path) -> None:
    tree = plant({"proc/self/status": STATUS.format(peak=900, resident=300, own=100)})
    probe = PeakMemory(tree, str(tmp_path / "absent" / "clear_refs"))
    with pytest.raises(Unavailable, match="an earlier peak hides it, .* without .*clear_refs"):
        probe.bytes()
    plant({"proc/self/status": STATUS.format(peak=1000, resident=300, own=100)})
    assert probe.bytes() == (100 + 700) * 1024


@pytest.mark.parametrize("system, unit", [("Darwin", 1), ("FreeBSD", 1024)])
def test_without_proc_getrusage_tells_peaks_in_units_of_its_own(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, unit: int
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    peaks = iter((200 * MIB, 300 * MIB))
    monkeypatch.setattr("resource.getrusage", lambda whose: SimpleNamespace(ru_maxrss=next(peaks) // unit))
    probe = PeakMemory(plant({}), str(tmp_path / "absent" / "clear_refs"))
    assert probe.bytes() == 300 * MIB


def test_the_peak_of_this_process_counts_pages_that_are_gone_by_now() -> None:
    probe = PeakMemory(FileTree("/"))
    before = probe.bytes()
    with mmap.mmap(-1, 64 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as pages:
        for at in range(0, len(pages), mmap.PAGESIZE):
            pages[at] = 1
    assert probe.bytes() - before > 60 * MIB
