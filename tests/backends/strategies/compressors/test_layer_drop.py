"""Layer dropping sends whole layers, or keeps them until enough of them has gathered."""

import numpy as np
import pytest

from backends.frameworks.layout import Variable
from backends.strategies.compressors.layer_drop import LayerDrop, threshold
from backends.strategies.message import DENSE, SPANS, whole
from tests.backends.strategies.vectors import floats

VARIABLES = (Variable("a", (2,), 0, 2), Variable("b", (3,), 2, 3), Variable("c", (), 5, 1))


#: Means of the absolute values: 4, 1 and 2; L1 norms: 8, 3 and 2.
GRADIENT = floats(4, -4, 1, -1, 1, 2)


@pytest.mark.parametrize(
    ("ratio", "wanted"),
    [
        (0.0, 1.0),  # 20 > 0
        (0.3, 1.0),  # 20 > 18
        (0.5, 2.0),  # 20 + 30 > 30
        (0.9, 3.0),  # 20 + 30 + 10 > 54
        (1.0, -1.0),  # never
    ],
)
def test_the_threshold_is_that_of_algorithm_1(ratio, wanted):
    assert threshold([3.0, 1.0, 2.0], [10, 20, 30], ratio) == wanted


def test_a_layer_below_the_threshold_waits_and_gathers():
    compressor = LayerDrop(VARIABLES, ratio=0.5)
    message = compressor.compress(GRADIENT)  # b and c are 4 of 6 elements, more than 3: the threshold is that of c
    assert compressor.metrics() == {"threshold": 2.0}
    assert message.kind == SPANS
    np.testing.assert_array_equal(message.arrays[0], [[0, 2], [5, 6]])
    np.testing.assert_array_equal(message.arrays[1], floats(4, -4, 2))
    np.testing.assert_array_equal(compressor.residual(), floats(0, 0, 1, -1, 1, 0))

    message = compressor.compress(floats(1, -1, 1, -1, 1, 0))  # b has gathered a mean of 2
    np.testing.assert_array_equal(message.arrays[0], [[2, 5]])
    np.testing.assert_array_equal(message.arrays[1], floats(2, -2, 2))
    np.testing.assert_array_equal(compressor.residual(), floats(1, -1, 0, 0, 0, 0))


def test_where_all_layers_go_so_does_the_vector():
    message = LayerDrop(VARIABLES, ratio=0).compress(GRADIENT)
    assert message.kind == DENSE
    np.testing.assert_array_equal(whole(message), GRADIENT)


def test_the_threshold_is_computed_again_from_the_gradients_of_that_step_alone():
    compressor = LayerDrop(VARIABLES, ratio=0.5, every=2)
    found = []
    for scale in (1, 5, 10, 1):
        compressor.compress(scale * GRADIENT)
        found.append(compressor.metrics()["threshold"])
    assert found == [2, 2, 20, 20]


def test_the_first_threshold_holds_for_a_tenth_only_as_momentum_grows_at_first():
    compressor = LayerDrop(VARIABLES, ratio=0.5, every=20)
    found = []
    for step in range(22):
        compressor.compress((1 + step) * GRADIENT)
        found.append(compressor.metrics()["threshold"])
    assert found == [2] * 2 + [6] * 18 + [42] * 2


def test_layers_can_be_ranked_and_judged_by_their_l1_norms():
    compressor = LayerDrop(VARIABLES, ratio=0.5, norm="l1")
    message = compressor.compress(GRADIENT)  # c and b are more than half: the threshold is that of b
    assert compressor.metrics() == {"threshold": 3.0}
    np.testing.assert_array_equal(message.arrays[0], [[0, 2], [2, 5]])


#: Twenty layers of a thousand.
ALIKE = tuple(Variable(str(i), (1000,), 1000 * i, 1000) for i in range(20))


def test_as_much_is_expected_to_go_as_is_not_dropped_and_what_returns():
    dense_bytes = 80_000
    assert LayerDrop(ALIKE).traffic_bytes() == pytest.approx((0.05 + 0.25 * 0.95) * dense_bytes, rel=0.01)
    assert LayerDrop(ALIKE, ratio=0.0).traffic_bytes() == pytest.approx(dense_bytes, rel=0.01)


def test_a_server_is_expected_to_send_back_what_any_of_its_workers_sends():
    sent = LayerDrop(ALIKE).traffic_bytes() / 80_000
    answers = [LayerDrop(ALIKE).answer_bytes(workers) / 80_000 for workers in (1, 2, 4)]
    assert answers == pytest.approx([1 - (1 - sent) ** workers for workers in (1, 2, 4)], rel=0.01)
