"""SGP's graph reaches everyone within one cycle."""

import pytest

from backends.strategies.topologies.graphs import hop


@pytest.mark.parametrize(
    ("n", "cycle"),
    [(2, [1]), (3, [1, 2]), (4, [1, 2]), (5, [1, 2, 4]), (6, [1, 2, 4]), (8, [1, 2, 4]), (9, [1, 2, 4, 8])],
)
def test_hops_are_the_powers_of_two_below_n_in_turn(n, cycle):
    assert [hop(n, step) for step in range(2 * len(cycle))] == cycle * 2


@pytest.mark.parametrize("n", range(2, 40))
def test_within_one_cycle_everyone_hears_of_everyone(n):
    heard = [{rank} for rank in range(n)]
    for step in range((n - 1).bit_length()):
        assert 0 < hop(n, step) < n
        heard = [heard[rank] | heard[(rank - hop(n, step)) % n] for rank in range(n)]
    assert all(len(each) == n for each in heard)
