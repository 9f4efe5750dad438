"""The largest elements go, and the others have their turn when they have grown."""

import numpy as np

from backends.strategies.compressors.top_k import TopK
from backends.strategies.message import DENSE, SPARSE
from tests.backends.strategies.vectors import floats, one_variable


def test_what_is_too_small_is_kept_and_added_to():
    compressor = TopK(one_variable(8), share=0.25)
    message = compressor.compress(floats(0, 5, 0, -7, 1, 2, 3, 0))
    assert message.kind == SPARSE
    np.testing.assert_array_equal(message.arrays[0], [1, 3])
    np.testing.assert_array_equal(message.arrays[1], floats(5, -7))
    np.testing.assert_array_equal(compressor.residual(), floats(0, 0, 0, 0, 1, 2, 3, 0))

    message = compressor.compress(floats(0, 1, 0, 0, 3, -2, 1, 0))  # 4 and 4 have gathered, 1 has not
    np.testing.assert_array_equal(message.arrays[0], [4, 6])
    np.testing.assert_array_equal(message.arrays[1], floats(4, 4))
    np.testing.assert_array_equal(compressor.residual(), floats(0, 1, 0, 0, 0, 0, 0, 0))


def test_from_a_half_on_everything_goes_in_no_more_bytes():
    compressor = TopK(one_variable(8), share=0.5)
    message = compressor.compress(floats(1, 2, 3, 4, 5, 6, 7, 8))
    assert message.kind == DENSE
    assert not compressor.residual().any()
    assert compressor.traffic_bytes() == message.traffic_bytes
