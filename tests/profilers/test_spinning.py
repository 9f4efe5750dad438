"""Spinning threads tell the cores that a process gets, whatever it may use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilers import cores, spinning
from profilers.records import SpunCores
from profilers.spinning import available_cores, fewer, measure, spin

amounts = st.floats(0.01, 128.0)


@given(amounts, amounts)
def test_fewer_cores_than_promised_count_and_more_do_not(usable, got):
    found = fewer(usable, SpunCores(min(1.0, got), got, 1))
    assert found == (got if got < 0.9 * usable else usable)


def test_what_was_not_measured_changes_nothing():
    assert fewer(2.0, None) == 2.0


def test_threads_get_processor_time():
    assert spin(2, 0.01) > 0.0


@pytest.mark.parametrize(("usable", "asked"), [(0.25, [1]), (1.0, [1]), (1.5, [2, 1]), (4.0, [4, 1])])
def test_a_thread_for_every_usable_core_spins_and_then_one_alone(monkeypatch, usable, asked):
    spun = []
    monkeypatch.setattr(spinning, "spin", lambda threads, seconds: spun.append(threads) or 0.5 * threads)
    monkeypatch.setattr(spinning, "_last", None)
    assert measure(usable) == SpunCores(0.5, 0.5 * asked[0], asked[0])
    assert spun == asked


def test_a_process_goes_by_what_it_measured(monkeypatch):
    monkeypatch.setattr(cores, "usable_cores", lambda: 2.0)
    monkeypatch.setattr(spinning, "_last", None)
    assert available_cores() == 2.0
    monkeypatch.setattr(spinning, "spin", lambda threads, seconds: 0.3)
    measure()
    assert available_cores() == 0.3
