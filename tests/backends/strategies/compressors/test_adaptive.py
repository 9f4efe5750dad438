"""What loses little goes compressed, and what would lose much goes whole."""

import numpy as np
import pytest

from backends.frameworks.layout import Variable
from backends.strategies.compressors.adaptive import RULES, Adaptive
from backends.strategies.compressors.gaia import Gaia
from backends.strategies.compressors.top_k import TopK
from backends.strategies.message import DENSE, SPARSE, bytes_of

VARIABLES = (Variable("all", (8,), 0, 8),)
SPARSE_BYTES, DENSE_BYTES = bytes_of(SPARSE, 8, 2, 2), bytes_of(DENSE, 8, 8)
#: The two largest have 25 / 26 of the squares.
UNEVEN = np.array([3, 4, 1, 0, 0, 0, 0, 0], np.float32)
EVEN = np.full(8, 2, np.float32)


def top2(delta=0.3, rule="accumulated"):
    return Adaptive(VARIABLES, of=TopK(VARIABLES, share=0.25), delta=delta, rule=rule)


def test_it_sends_what_the_other_does_where_that_loses_little():
    compressor = top2()
    message = compressor.compress(UNEVEN)
    np.testing.assert_array_equal(message.arrays[0], [0, 1])
    np.testing.assert_array_equal(compressor.residual(), [0, 0, 1, 0, 0, 0, 0, 0])


def test_it_sends_all_there_is_where_that_would_lose_much():
    compressor = top2()
    compressor.compress(UNEVEN)
    message = compressor.compress(EVEN)  # of 9 + 7 * 4 = 37 two could send 13
    assert message.kind == DENSE
    np.testing.assert_array_equal(message.arrays[0], [2, 2, 3, 2, 2, 2, 2, 2])
    assert not compressor.residual().any()


def test_by_the_rule_of_the_paper_the_gradient_alone_decides():
    by_all, by_gradient = top2(), top2(rule="gradient")
    for compressor in (by_all, by_gradient):
        compressor.of.accumulator[:] = EVEN
    assert by_all.compress(UNEVEN).kind == DENSE  # of 5^2 + 6^2 + 3^2 + 5 * 2^2 = 90 two could send 61
    message = by_gradient.compress(UNEVEN)  # of 26 they could send 25
    np.testing.assert_array_equal(message.arrays[1], [5, 6])
    np.testing.assert_array_equal(by_gradient.residual(), [0, 0, 3, 2, 2, 2, 2, 2])
    assert by_gradient.compress(EVEN).kind == DENSE and not by_gradient.residual().any()


@pytest.mark.parametrize(("delta", "kind"), [(0.75, SPARSE), (0.74, DENSE), (0.0, DENSE), (1.0, SPARSE)])
def test_delta_is_the_share_of_the_squares_that_may_wait(delta, kind):
    assert top2(delta).compress(EVEN).kind == kind  # 6 of 8 equal ones


@pytest.mark.parametrize("rule", RULES)
def test_compressed_steps_and_values_are_counted(rule):
    compressor = top2(rule=rule)
    assert compressor.metrics() == {"cnc_ratio": 0.0, "floats_sent": 0}
    for values in (UNEVEN, EVEN, EVEN, UNEVEN):
        compressor.compress(values)
    assert compressor.metrics() == {"cnc_ratio": 0.5, "floats_sent": 2 + 8 + 8 + 2}


def test_what_it_costs_follows_the_cnc_ratio():
    compressor = top2()
    assert compressor.traffic_bytes() == DENSE_BYTES
    compressor.compress(UNEVEN)
    assert compressor.traffic_bytes() == SPARSE_BYTES
    compressor.compress(EVEN)
    assert compressor.traffic_bytes() == (SPARSE_BYTES + DENSE_BYTES) / 2


@pytest.mark.parametrize("rule", RULES)
def test_the_other_sees_the_weights(rule):
    compressor = Adaptive(VARIABLES, of=Gaia(VARIABLES), rule=rule)
    compressor.bind_weights(np.ones(8, np.float32))
    assert compressor.compress(UNEVEN).kind == SPARSE


def test_its_counts_survive():
    compressor, twin = top2(), top2()
    compressor.compress(UNEVEN)
    twin.restore(compressor.state())
    assert twin.metrics() == {"cnc_ratio": 1.0, "floats_sent": 2}
    with pytest.raises(ValueError, match="numbers after"):
        twin.restore(compressor.state()[:-1])
