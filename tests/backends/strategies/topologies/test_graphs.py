"""SGP's graph reaches everyone within one cycle."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.frameworks.layout import Variable
from backends.strategies.topologies.graphs import derangement, hop, segments


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


def up_to(most, source):
    """One of 0..most: the low bits of a word, or of the next, until they are no more than that."""
    while True:
        drawn = source.getrandbits(32) & (2 ** most.bit_length() - 1)
        if drawn <= most:
            return drawn


def shuffled(n, choose):
    """Fisher and Yates: ``choose(most)`` is one of 0..most."""
    drawn = list(range(n))
    for i in range(n - 1, 0, -1):
        j = choose(i)
        drawn[i], drawn[j] = drawn[j], drawn[i]
    return tuple(drawn)


def with_the_standard_library(n, seed, step, segment):
    """The same, from Python's own Mersenne Twister, seeded with the same three words."""
    source = random.Random(seed | step << 32 | segment << 64)
    while True:
        drawn = shuffled(n, lambda most: up_to(most, source))
        if all(a != i for i, a in enumerate(drawn)):
            return drawn


@settings(max_examples=60, deadline=None)
@given(
    n=some.integers(2, 12),
    seed=some.integers(0, 2**32 - 1),
    step=some.integers(0, 2**32 - 1),
    segment=some.integers(1, 100),
)
def test_it_is_the_same_wherever_it_is_drawn(n, seed, step, segment):
    assert derangement(n, seed, step, segment) == with_the_standard_library(n, seed, step, segment)


@pytest.mark.parametrize("n", [0, 1])
def test_one_alone_has_nobody_to_send_to(n):
    with pytest.raises(ValueError, match=f"{n} ranks"):
        derangement(n, 1, 2, 3)


@pytest.mark.parametrize("words", [(-1, 0, 0), (2**32, 0, 0), (0, -1, 0)])
def test_what_it_is_drawn_from_has_32_bits(words):
    with pytest.raises(ValueError):
        derangement(4, *words)


def layers(*sizes):
    ends = list(itertools.accumulate(sizes))
    return [Variable(str(i), (size,), end - size, size) for i, (size, end) in enumerate(zip(sizes, ends, strict=True))]


@pytest.mark.parametrize(
    ("count", "spans"),
    [
        (1, [(0, 16)]),
        (2, [(0, 8), (8, 16)]),
        (3, [(0, 5), (5, 8), (8, 16)]),
        (4, [(0, 4), (4, 5), (5, 8), (8, 16)]),
        (9, [(0, 4), (4, 5), (5, 8), (8, 16)]),
    ],
)
def test_segments_are_whole_layers_of_about_equal_size(count, spans):
    assert segments(layers(4, 1, 3, 8), count) == spans


@given(sizes=some.lists(some.integers(1, 50), min_size=1, max_size=30), count=some.integers(1, 12))
def test_segments_cover_all_and_each_has_a_layer(sizes, count):
    spans = segments(layers(*sizes), count)
    assert len(spans) == min(count, len(sizes))
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]
    assert (spans[0][0], spans[-1][1]) == (0, sum(sizes))
    assert {end for _, end in spans} <= set(itertools.accumulate(sizes))
    assert all(start < end for start, end in spans)


@given(size=some.integers(1, 9), count=some.integers(1, 8), each=some.integers(1, 8))
def test_equal_layers_make_equal_segments(size, count, each):
    spans = segments(layers(*[size] * (count * each)), count)
    assert {end - start for start, end in spans} == {size * each}
