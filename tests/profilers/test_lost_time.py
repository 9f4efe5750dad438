"""Stolen and withheld processor time, as the kernel's files tell them."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers import lost_time
from profilers.file_tree import FileTree
from profilers.lost_time import LostTime, parse_stolen, parse_throttled

STAT = "cpu  {user} 0 100 {idle} 0 0 0 {stolen} 7 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"
CPU_STAT = "nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time 5\n"
MOUNT = "33 25 0:29 / /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu\n"


@pytest.fixture
def machine(tmp_path):
    """Writes files of a machine; gives its tree."""

    def write(**files):
        for name, text in {"proc/self/cgroup": "4:cpu:/a/b\n", "proc/self/mountinfo": MOUNT, **files}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return FileTree(tmp_path)

    return write


def stat(user=0, idle=0, stolen=0):
    return {"proc/stat": STAT.format(user=user, idle=idle, stolen=stolen)}


def quota(folder, periods, throttled):
    return {f"sys/fs/cgroup/cpu/{folder}/cpu.stat": CPU_STAT.format(periods=periods, throttled=throttled)}


def test_the_stolen_share_is_of_all_ticks_since_the_turn_before(machine):
    lost = LostTime(machine(**stat(user=1000, idle=500, stolen=50)))
    machine(**stat(user=1060, idle=520, stolen=70))
    assert lost.turn().stolen == pytest.approx(20 / 100)
    machine(**stat(user=1070, idle=530, stolen=70))
    assert lost.turn().stolen == 0.0


def test_guests_are_not_counted_twice():
    assert parse_stolen(STAT.format(user=1, idle=2, stolen=3)) == (3, 1 + 100 + 2 + 3)


def test_nothing_is_told_where_no_tick_has_passed(machine):
    assert LostTime(machine(**stat(stolen=5))).turn().stolen is None


@pytest.mark.parametrize("text", ["", "intr 5\n", "cpu 1 2 3 4\n", "cpu one 2 3 4 5 6 7 8\n"])
def test_a_kernel_that_tells_no_stolen_ticks_makes_the_share_unknown(machine, text):
    assert LostTime(machine(**{"proc/stat": text})).turn().stolen is None


def test_the_quota_that_was_used_up_most_often_counts_among_all_ancestors(machine):
    lost = LostTime(machine(**quota("a/b", 100, 10), **quota("a", 100, 0)))
    machine(**quota("a/b", 110, 15), **quota("a", 110, 8))
    assert lost.turn().throttled == pytest.approx(8 / 10)


def test_without_a_quota_nothing_was_withheld_that_is_known_of(machine):
    assert LostTime(machine(**{"sys/fs/cgroup/cpu/a/cpu.stat": "usage_usec 5\n"})).turn().throttled is None


def test_a_machine_without_these_files_tells_nothing(tmp_path):
    assert LostTime(FileTree(tmp_path)).turn() == (None, None)


@given(st.text())
def test_any_text_is_read_or_refused_as_no_number(text):
    for parse in (parse_stolen, parse_throttled):
        with contextlib.suppress(ValueError):
            parse(text)


@given(*[st.integers(0, 10**6)] * 4)
def test_shares_lie_between_0_and_1(stolen, more, busy, later):
    before, after = (stolen, stolen + busy), (stolen + more, stolen + busy + more + later)
    share = lost_time._share(before, after)
    assert share is None or 0 <= share <= 1
