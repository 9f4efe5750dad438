"""The slowest gradient of a step, by hand: 1 s or 3 s, each as likely."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.arrays import Floats
from planner.predict.straggler import SETS_AT_ONCE, paces

EVEN = np.array([0.5, 1.5])
TIMES = st.lists(st.floats(0.001, 10.0), min_size=1, max_size=6).map(np.array)


def pace(*gradients_s: Floats) -> float:
    """Of a step of all members whose gradients take these times."""
    means = np.array([each.mean() for each in gradients_s])
    shares = [each / each.mean() for each in gradients_s]
    return float(paces(means, shares, np.ones((1, len(gradients_s)), bool))[0])


@pytest.mark.parametrize(("members", "expected"), [(1, 1.0), (2, 1.25), (3, 1.375)])
def test_the_more_members_the_more_often_one_of_them_is_slow(members: int, expected: float) -> None:
    assert pace(*[2 * EVEN] * members) == pytest.approx(expected)


def test_a_member_that_is_always_faster_changes_nothing() -> None:
    assert pace(2 * EVEN, np.array([0.5, 0.9])) == pytest.approx(1.0)


def test_without_variation_the_slowest_mean_is_the_pace() -> None:
    assert pace(np.array([0.3]), np.array([0.7, 0.7])) == pytest.approx(1.0)


def test_each_set_has_the_pace_of_its_own_members() -> None:
    sets = np.array([[True, False, False], [True, True, False], [True, True, True], [False, False, True]])
    found = paces(np.array([2.0, 2.0, 0.1]), [EVEN, EVEN, np.array([1.0])], sets)
    assert found == pytest.approx([1.0, 1.25, 1.25, 1.0])
    many = np.repeat(sets, SETS_AT_ONCE, axis=0)
    assert (paces(np.array([2.0, 2.0, 0.1]), [EVEN, EVEN, np.array([1.0])], many) == np.repeat(found, 1024)).all()


@given(st.lists(TIMES, min_size=1, max_size=3))
def test_it_is_the_mean_over_all_combinations_in_any_order(gradients_s: list[Floats]) -> None:
    every = np.stack([axis.ravel() for axis in np.meshgrid(*gradients_s)])
    expected = every.max(axis=0).mean() / max(each.mean() for each in gradients_s)
    assert pace(*gradients_s) == pytest.approx(expected)
    assert pace(*gradients_s[::-1]) == pytest.approx(expected)
