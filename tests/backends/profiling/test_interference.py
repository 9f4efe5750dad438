"""What a transfer takes from a computation beside it."""

import contextlib
import itertools
import math
import os
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from backends.profiling import interference
from backends.profiling.interference import ComputedBlocks, InterferenceProbe, TransferTurn, excess_s, stolen_cpu_s
from profilers.cpu_quota import usable_cores
from tests.running import until


def rounds(*parts):
    """Rounds of several (begin_s, end_s, every_s), each of which costs as much processor time as it
    takes.
    """
    ended_s = [
        begin_s + every_s * number
        for begin_s, end_s, every_s in parts
        for number in range(round((end_s - begin_s) / every_s))
    ]
    return ComputedBlocks(ended_s, ended_s)


def turn(begin_s=1.0, end_s=2.0, cpu_s=0.0):
    return TransferTurn(begin_s, end_s, cpu_s)


def test_a_machine_that_becomes_slower_all_the_while_has_lost_nothing_by_a_turn():
    ended_s = list(itertools.accumulate(1e-3 + 2e-7 * number for number in range(2500)))
    each = ComputedBlocks(ended_s, ended_s)
    assert excess_s(each, each.ended_s, turn()) == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize("part", [(1.2, 1.8, 0.1), (0.0, 1.9, 0.1), (1.2, 3.0, 0.1), (0.0, 0.9, 0.1), (2.1, 3.0, 0.1)])
def test_nothing_before_or_after_or_within_is_nothing_to_compare_with(part):
    each = rounds(part)
    assert math.isnan(excess_s(each, each.ended_s, turn()))


@given(some.floats(0.0, 0.95), some.floats(0.2, 3.0))
def test_any_loss_is_found(share, lasted_s):
    begin_s, end_s = 1.0, 1.0 + lasted_s
    each = rounds((0.0, begin_s, 1e-3), (begin_s, end_s, 1e-3 / (1 - share)), (end_s, end_s + 1, 1e-3))
    assert excess_s(each, each.ended_s, turn(begin_s, end_s)) == pytest.approx(share * lasted_s, abs=0.05)


def test_where_a_process_cannot_start_none_goes_on(monkeypatch):
    started, popen = [], subprocess.Popen

    def one(*given, **how):
        if started:
            raise OSError("Resource temporarily unavailable")
        started.append(popen(*given, **how))
        return started[0]

    monkeypatch.setattr(interference, "usable_cores", lambda: 2.0)
    monkeypatch.setattr(subprocess, "Popen", one)
    with pytest.raises(OSError, match="temporarily"):
        InterferenceProbe()
    assert started[0].returncode is not None


class Finished:
    """A neighbour whose rounds are known: pauses on the wall, and rounds that cost a quarter more
    within the turns.
    """

    def __init__(self, throttled, turns=None, slow=(1.0, 2.0, 3.0, 4.0, 5.0)):
        self.throttled = throttled
        self.turns = TURNS if turns is None else turns
        self._slow = slow

    def stop(self):
        wall = rounds(
            *(
                part
                for at in TURNS
                for part in (
                    (at.begin_s - 0.5, at.begin_s, 0.001),
                    (at.begin_s, at.end_s, 0.004 if at.begin_s in self._slow else 0.001),
                )
            )
        ).ended_s
        wall += rounds((TURNS[-1].end_s, TURNS[-1].end_s + 0.5, 0.001)).ended_s
        within = [any(each.begin_s < at <= each.end_s for each in TURNS if each.begin_s in self._slow) for at in wall]
        return [ComputedBlocks(wall, list(itertools.accumulate(0.00125 if dear else 0.001 for dear in within)))]


TURNS = [turn(begin_s, begin_s + 0.5, 0.1) for begin_s in (1.0, 2.0, 3.0, 4.0, 5.0)]


def test_under_a_quota_its_pauses_are_not_the_transfer_s():
    assert stolen_cpu_s(Finished(throttled=True)) == pytest.approx(5 * (0.1 + 125 * 0.00025), abs=0.01)


def test_what_slows_two_of_five_turns_is_not_the_transfer():
    assert stolen_cpu_s(Finished(throttled=False, slow=(2.0, 3.0))) == pytest.approx(0.0, abs=0.05)


def cpu_s(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_it_computes_on_every_processor_until_it_is_told_to_stop():
    with contextlib.closing(InterferenceProbe()) as neighbour:
        began_s = time.monotonic()
        before_s = list(map(cpu_s, neighbour._processes))
        until(
            lambda: all(
                cpu_s(each) > taken_s + 0.3 for each, taken_s in zip(neighbour._processes, before_s, strict=True)
            ),
            lambda: "it does not compute",
        )
        found = neighbour.stop()
    assert len(found) == max(1, math.ceil(usable_cores()))
    for each in found:
        assert each.ended_s[-1] - began_s > 0.25
        for clock in each:
            assert list(clock) == sorted(clock)


def test_it_ends_when_it_is_closed():
    neighbour = InterferenceProbe()
    pids = [process.pid for process in neighbour._processes]
    neighbour.close()
    neighbour.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
