"""Spinning threads tell the cores that a process gets, whatever it may use."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers import cores, spinning
from profilers.records.device import SpunCores
from profilers.spinning import Pause, Spin, available_cores, fewer, measure, period_of, spin

amounts = st.floats(0.01, 128.0)


@given(amounts, amounts)
def test_fewer_cores_than_promised_count_and_more_do_not(usable, got):
    found = fewer(usable, SpunCores(min(1.0, got), got, 1))
    assert found == (got if got < 0.9 * usable else usable)


def test_what_was_not_measured_changes_nothing():
    assert fewer(2.0, None) == 2.0


def test_threads_get_processor_time():
    assert spin(2, 0.01).cores > 0.0


def test_the_period_of_pauses_is_that_between_their_ends(monkeypatch):
    """A thread gets 2 of 6 ms, in parts of 0.5 ms; another takes 1 ms. The clocks are made up."""
    wall_ms = itertools.chain.from_iterable([0.5, 0.5, 1.5, 3.5] for _ in itertools.count())
    now = {"wall": 0.0, "cpu": 0.0}

    class Hash:
        def __init__(self, block):
            now["wall"] += next(wall_ms) / 1e3
            now["cpu"] += 0.0005

        def digest(self):
            pass

    monkeypatch.setattr(spinning.hashlib, "sha256", Hash)
    monkeypatch.setattr(spinning.cores, "thread_cpu_s", lambda: now["cpu"])
    found = spin(1, 0.1, lambda: now["wall"])
    assert (found.cores, found.period_s) == (pytest.approx(1 / 3, rel=0.05), pytest.approx(0.006))
    assert spin(1, 0.02, lambda: now["wall"]).period_s is None  # three pauses tell too little


def pauses(*found):
    """Pauses from (milliseconds between their ends, milliseconds)."""
    ends_ms = itertools.accumulate(between_ms for between_ms, _ in found)
    return [Pause(end_ms / 1e3, pause_ms / 1e3) for end_ms, (_, pause_ms) in zip(ends_ms, found, strict=True)]


@pytest.mark.parametrize(
    "longer",
    [
        [],
        [(5, 9)],  # once something else had the processor
        [(5, 8)] + 19 * [(5, 3.6)] + [(5, 8)] + 19 * [(5, 3.6)] + [(5, 8)],  # a thread works ten times a second
        40 * [(0.5, 0.4), (0.5, 0.4), (4, 3.6)],  # others interrupt it for a moment, all the time
    ],
)
def test_pauses_of_other_kinds_do_not_hide_a_period(longer):
    assert period_of(pauses(*40 * [(5, 3.6)], *longer)) == pytest.approx(0.005, rel=0.01)


@given(st.floats(0.0003, 0.1), st.integers(20, 100))
def test_one_pause_of_any_length_does_not_hide_a_period(seconds, count):
    found = period_of(pauses(*count * [(5, 3.6)], (5, 1e3 * seconds)))
    assert found == pytest.approx(0.005) or 3.6e-3 * count < seconds


@pytest.mark.parametrize(("usable", "asked"), [(0.25, [1]), (1.0, [1]), (1.5, [2, 1]), (4.0, [4, 1])])
def test_a_thread_for_every_usable_core_spins_and_then_one_alone(monkeypatch, usable, asked):
    spun = []
    monkeypatch.setattr(spinning, "spin", lambda threads, seconds: spun.append(threads) or Spin(threads / 2, 0.005))
    monkeypatch.setattr(spinning, "_last", None)
    assert measure(usable) == SpunCores(0.5, 0.5 * asked[0], asked[0], 0.005)
    assert spun == asked


def test_a_process_goes_by_what_it_measured(monkeypatch):
    monkeypatch.setattr(cores, "usable_cores", lambda: 2.0)
    monkeypatch.setattr(spinning, "_last", None)
    assert available_cores() == 2.0
    monkeypatch.setattr(spinning, "spin", lambda threads, seconds: Spin(0.3, None))
    measure()
    assert available_cores() == 0.3
