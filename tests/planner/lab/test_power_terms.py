"""The terms that bend an emulated device's watts, and the seed that draws them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.lab.fleetwriter import fleet_text
from planner.lab.power import MODELS
from planner.lab.power_terms import RANGES, WITH_FAN, PowerTerms, draw, heated, load_share
from planner.lab.spec import DeviceSpec
from planner.lab.state import AppliedDevice, LabNames, LabState

STRAIGHT = PowerTerms(bend=0.0, leakage=0.0, fan=0.0, fan_from=0.5, supply=0.0, warm_s=100.0)

units = st.builds(draw, st.integers(0, 1 << 32), st.sampled_from(["pc", "tx2", "b"]), st.sampled_from([*MODELS]))
shares = st.floats(0, 1)


@given(shares, shares)
def test_without_terms_the_share_is_the_utilisation(utilisation: float, warmth: float) -> None:
    assert load_share(STRAIGHT, utilisation, warmth) == utilisation


@given(units)
def test_both_ends_stay_where_their_sources_put_them(terms: PowerTerms) -> None:
    assert load_share(terms, 0.0, 0.0) == 0.0
    assert load_share(terms, 1.0, 1.0) == pytest.approx(1.0)


@given(units, shares, shares, shares)
def test_more_load_and_more_warmth_never_take_less(terms: PowerTerms, one: float, other: float, warmth: float) -> None:
    less, more = sorted((one, other))
    assert load_share(terms, less, warmth) <= load_share(terms, more, warmth) + 1e-12
    assert load_share(terms, warmth, less) <= load_share(terms, warmth, more) + 1e-12


@pytest.mark.parametrize(
    ("term", "utilisation", "warmth", "share"),
    [
        ({"bend": 0.4}, 0.5, 0.0, 0.6),
        ({"bend": -0.2}, 0.5, 0.0, 0.45),
        ({"leakage": 0.1}, 1.0, 0.0, 0.9),
        ({"leakage": 0.1}, 1.0, 0.5, 0.95),
        ({"fan": 0.08}, 1.0, 0.5, 0.92),  # stands still
        ({"fan": 0.08}, 1.0, 0.75, 0.92 + 0.08 / 8),  # half its speed takes an eighth
        ({"supply": 0.1}, 0.5, 0.0, 0.5 * 0.95),
    ],
)
def test_each_term_by_itself(term: dict[str, float], utilisation: float, warmth: float, share: float) -> None:
    assert load_share(STRAIGHT._replace(**term), utilisation, warmth) == pytest.approx(share)


def test_temperature_follows_the_load_with_its_time_constant() -> None:
    assert heated(STRAIGHT, 0.0, 1.0, 100.0).after == pytest.approx(1 - math.exp(-1))
    assert heated(STRAIGHT, 1.0, 0.0, 100.0).after == pytest.approx(math.exp(-1))
    assert heated(STRAIGHT, 0.3, 1.0, 0.0) == pytest.approx((0.3, 0.3))
    assert heated(STRAIGHT, 0.0, 1.0, 1e6).mean == pytest.approx(1.0, abs=1e-3)


@given(units, shares, shares, st.floats(0.01, 1e4), st.integers(1, 20))
def test_many_periods_heat_as_one_does(
    terms: PowerTerms, warmth: float, utilisation: float, lasted_s: float, periods: int
) -> None:
    whole, mean, after = heated(terms, warmth, utilisation, lasted_s), 0.0, warmth
    for _ in range(periods):
        part = heated(terms, after, utilisation, lasted_s / periods)
        mean, after = mean + part.mean / periods, part.after
    assert (after, mean) == pytest.approx(tuple(whole), abs=1e-9)


def test_a_seed_draws_the_same_unit_on_every_machine() -> None:
    expected = PowerTerms(bend=-0.0418, leakage=0.04633, fan=0.0, fan_from=0.6779, supply=0.05072, warm_s=66.67)
    assert draw(0, "tx2", "tx2") == pytest.approx(expected, rel=1e-3)


@given(units)
def test_what_is_drawn_is_plausible(terms: PowerTerms) -> None:
    assert tuple(RANGES) == PowerTerms._fields
    for term, (least, greatest) in RANGES.items():
        value = getattr(terms, term)
        assert least <= value <= greatest or (term, value) == ("fan", 0.0)


def test_a_fan_counts_where_the_sensor_sees_it() -> None:
    assert [kind for kind in MODELS if draw(0, "a", kind).fan] == list(WITH_FAN)


def test_two_units_of_a_kind_differ() -> None:
    assert draw(0, "a", "tx2") != draw(0, "b", "tx2") != draw(1, "b", "tx2")


def test_the_fleet_file_that_the_predictor_starts_from_holds_none_of_it() -> None:
    device = DeviceSpec("a", "pc", 0.5, 1e6, None, 0.0, None, None, MODELS["pc"])
    texts = {
        fleet_text(LabNames("lab"), LabState(1, (AppliedDevice(each, 1, {}),)), [each])
        for each in (device, device._replace(terms=draw(1, "a", "pc")), device._replace(terms=draw(2, "a", "pc")))
    }
    assert len(texts) == 1
