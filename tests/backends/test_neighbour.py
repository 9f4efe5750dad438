"""What a transfer takes from a computation beside it."""

import contextlib
import math
import os
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.neighbour import Neighbour, taken_share
from profilers.cores import usable_cores


def rounds(begin_s, end_s, every_s):
    return [begin_s + every_s * number for number in range(round((end_s - begin_s) / every_s))]


def test_half_as_many_rounds_within_mean_that_half_was_taken():
    marks = rounds(0.0, 1.0, 0.001) + rounds(1.0, 2.0, 0.002) + rounds(2.0, 3.0, 0.001)
    assert taken_share([marks], 1.0, 2.0) == pytest.approx(0.5, abs=0.005)


def test_the_processors_of_a_device_count_together():
    undisturbed, stopped = rounds(0.0, 3.0, 0.001), rounds(0.0, 1.0, 0.001) + rounds(2.0, 3.0, 0.001)
    assert taken_share([undisturbed, stopped], 1.0, 2.0) == pytest.approx(0.5, abs=0.005)


def test_more_rounds_within_than_around_took_nothing():
    marks = rounds(0.0, 1.0, 0.002) + rounds(1.0, 2.0, 0.001) + rounds(2.0, 3.0, 0.002)
    assert taken_share([marks], 1.0, 2.0) == 0.0


@pytest.mark.parametrize("marks", [[], [1.2, 1.5, 1.8]])
def test_nothing_before_and_after_is_nothing_to_compare_with(marks):
    with pytest.raises(ValueError):
        taken_share([marks], 1.0, 2.0)


@given(st.floats(0.0, 0.95), st.floats(0.2, 3.0))
def test_any_share_is_found(share, lasted_s):
    begin_s, end_s = 1.0, 1.0 + lasted_s
    marks = rounds(0.0, begin_s, 1e-3) + rounds(begin_s, end_s, 1e-3 / (1 - share)) + rounds(end_s, end_s + 1, 1e-3)
    assert taken_share([marks], begin_s, end_s) == pytest.approx(share, abs=0.03)


def test_it_computes_on_every_processor_until_it_is_told_to_stop():
    with contextlib.closing(Neighbour()) as neighbour:
        began_s = time.monotonic()
        time.sleep(0.3)
        marks = neighbour.stop()
    assert len(marks) == max(1, math.ceil(usable_cores()))
    for each in marks:
        assert each[-1] - began_s > 0.25
        assert list(each) == sorted(each)


def test_it_ends_when_it_is_closed():
    neighbour = Neighbour()
    pids = [process.pid for process in neighbour._processes]
    neighbour.close()
    neighbour.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
