"""The physical model of emulated devices, and what a spec may change of it."""

import statistics
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.lab.power import LIMITS, MODELS, PhysicalPower, from_table, watts
from planner.lab.power_monitors import MONITORS

QUIET = PhysicalPower(idle_w=3.0, dynamic_w=12.0, joules_per_byte=4e-9, noise_w=0.0, period_s=0.1)


@pytest.mark.parametrize(
    ("load_share", "bytes_per_s", "drawn_w"),
    [(0.0, 0.0, 3.0), (1.0, 0.0, 15.0), (0.5, 0.0, 9.0), (0.0, 125e6, 3.5), (1.0, 250e6, 16.0)],
)
def test_watts_are_idle_and_load_and_network(load_share: float, bytes_per_s: float, drawn_w: float) -> None:
    assert watts(QUIET, load_share, bytes_per_s, Random(1)) == pytest.approx(drawn_w)


def test_readings_scatter_as_stated_around_the_model() -> None:
    random = Random(7)
    readings = [watts(QUIET._replace(noise_w=0.2), 0.5, 0.0, random) for _ in range(4000)]
    assert statistics.fmean(readings) == pytest.approx(9.0, abs=0.02)
    assert statistics.stdev(readings) == pytest.approx(0.2, rel=0.1)


def test_a_seed_gives_the_same_readings_again() -> None:
    noisy = QUIET._replace(noise_w=0.2)
    one, other = Random(7), Random(7)
    assert [watts(noisy, 0.5, 0.0, one) for _ in range(5)] == [watts(noisy, 0.5, 0.0, other) for _ in range(5)]


@given(st.floats(0, 1), st.floats(0, 1e9), st.integers(0, 99), st.floats(0, 1e3))
def test_noise_makes_no_negative_watts(load_share: float, bytes_per_s: float, seed: int, noise_w: float) -> None:
    assert watts(QUIET._replace(noise_w=noise_w), load_share, bytes_per_s, Random(seed)) >= 0.0


def test_every_kind_has_a_model_and_monitors_and_keeps_its_own_limits() -> None:
    assert list(MODELS) == list(MONITORS)
    for kind, model in MODELS.items():
        assert from_table(kind, model._asdict()) == model


def test_a_table_replaces_single_values() -> None:
    assert from_table("tx2", {"idle_w": 5, "period_s": 0.05}) == MODELS["tx2"]._replace(idle_w=5.0, period_s=0.05)
    assert from_table("tx2", {}) == MODELS["tx2"]


@pytest.mark.parametrize(
    ("kind", "table", "message"),
    [
        ("toaster", {}, 'kind "toaster" has no power model and no sensor; choose one of pc, tx1'),
        ("pc", {"idle": 3}, 'power has no key "idle"; its keys are idle_w, dynamic_w'),
        ("pc", {"idle_w": 0}, "idle_w is 0; write a number of 0.1 to 10000 (W)"),
        ("pc", {"dynamic_w": "12"}, "dynamic_w is '12'; write a number"),
        ("pc", {"noise_w": True}, "noise_w is True; write a number"),
        ("pc", {"joules_per_byte": float("nan")}, "joules_per_byte is nan; write a number of 0 to 0.001 (J)"),
        ("pc", {"period_s": 0.001}, "period_s is 0.001; write a number of 0.02 to 10 (s)"),
    ],
)
def test_a_mistake_is_named_with_its_value_and_its_remedy(kind: str, table: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        from_table(kind, table)
    assert str(raised.value).startswith(message)


def test_the_keys_that_are_checked_are_those_of_the_model() -> None:
    assert tuple(LIMITS) == PhysicalPower._fields
