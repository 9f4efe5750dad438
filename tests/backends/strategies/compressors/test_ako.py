"""Block after block goes in turn, each with all that has gathered in it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.strategies.compressors.ako import Ako
from backends.strategies.message import DENSE, SPANS, bytes_of
from tests.backends.strategies.vectors import one_variable


def budget(size, elements):
    """Bytes that a block of so many elements takes at most."""
    return bytes_of(SPANS, size, 1, size) - 4 * (size - elements)


def test_ten_elements_in_four_blocks():
    compressor = Ako(one_variable(10), blocks=4)
    sent = [compressor.compress(np.ones(10, np.float32)) for _ in range(4)]
    assert [message.arrays[0].tolist() for message in sent] == [[[0, 3]], [[3, 5]], [[5, 8]], [[8, 10]]]
    assert [message.arrays[1].tolist() for message in sent] == [[1, 1, 1], [2, 2], [3, 3, 3], [4, 4]]
    assert compressor.residual().tolist() == [3, 3, 3, 2, 2, 1, 1, 1, 0, 0]

    again = compressor.compress(np.ones(10, np.float32))
    assert again.arrays[0].tolist() == [[0, 3]]
    assert again.arrays[1].tolist() == [4, 4, 4]


def test_one_block_is_everything():
    assert Ako(one_variable(10), blocks=1).compress(np.ones(10, np.float32)).kind == DENSE


def test_the_link_decides_how_many_blocks_there_are():
    compressor = Ako(one_variable(10), blocks=4)
    assert compressor.compress(np.ones(10, np.float32), budget(10, 5)).arrays[0].tolist() == [[0, 5]]
    assert compressor.compress(np.ones(10, np.float32), budget(10, 3)).arrays[0].tolist() == [[5, 8]]
    assert compressor.compress(np.ones(10, np.float32), float("inf")).arrays[0].tolist() == [[8, 10]]
    assert compressor.compress(np.ones(10, np.float32), float("inf")).kind == DENSE


@settings(max_examples=80, deadline=None)
@given(size=some.integers(1, 40), fits=some.lists(some.integers(1, 50), min_size=1, max_size=60))
def test_blocks_follow_each_other_and_fit_whatever_the_link_can_take(size, fits):
    compressor = Ako(one_variable(size))
    at = 0
    for elements in fits:
        limit = budget(size, elements)
        message = compressor.compress(np.ones(size, np.float32), limit)
        start, end = (0, size) if message.kind == DENSE else message.arrays[0][0].tolist()
        assert start == at
        assert start < end <= size
        assert message.traffic_bytes <= limit
        at = end % size


def test_what_it_costs_is_the_mean_over_its_blocks():
    compressor = Ako(one_variable(10), blocks=4)
    sent = [compressor.compress(np.ones(10, np.float32)).traffic_bytes for _ in range(4)]
    assert compressor.traffic_bytes() == np.mean(sent)
    assert compressor.traffic_bytes(budget(10, 3)) == np.mean(sent)
    assert compressor.traffic_bytes(float("inf")) == bytes_of(DENSE, 10, 10)
