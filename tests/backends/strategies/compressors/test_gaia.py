"""What changes a weight noticeably goes, judged by the weights it is shown."""

import numpy as np
import pytest

from backends.strategies.compressors.gaia import Gaia
from tests.backends.strategies.vectors import floats, one_variable


def test_a_change_of_more_than_a_hundredth_goes_and_smaller_ones_gather():
    compressor = Gaia(one_variable(8))
    compressor.bind_weights(floats(1, 2, 0, -4, 10, 10, 10, 10))  # thresholds 0.01, 0.02, 0, 0.04, 0.1 …
    message = compressor.compress(floats(0.02, 0.012, 0, -0.05, 0.03, 0, 0, 0))
    np.testing.assert_array_equal(message.arrays[0], [0, 3])
    np.testing.assert_array_equal(message.arrays[1], floats(0.02, -0.05))
    np.testing.assert_array_equal(compressor.residual(), floats(0, 0.012, 0, 0, 0.03, 0, 0, 0))

    message = compressor.compress(floats(0, 0.012, 0, 0, 0.03, 0, 0, 0))
    np.testing.assert_array_equal(message.arrays[0], [1])


def test_any_change_of_a_weight_that_is_zero_goes():
    compressor = Gaia(one_variable(4))
    compressor.bind_weights(np.zeros(4, np.float32))
    np.testing.assert_array_equal(compressor.compress(floats(0, 1e-30, 0, 0)).arrays[0], [1])


def test_weights_are_read_when_something_is_sent_and_never_written():
    compressor = Gaia(one_variable(4))
    weights = np.ones(4, np.float32)
    compressor.bind_weights(weights)
    assert compressor.compress(floats(0.5, 0, 0, 0)).arrays[0].size == 1
    weights[:] = 100
    assert compressor.compress(floats(0.5, 0, 0, 0)).arrays[0].size == 0
    np.testing.assert_array_equal(weights, 100)


@pytest.mark.parametrize(("falling", "sent_at"), [(True, 3), (False, None)])
def test_the_threshold_falls_with_the_root_of_the_step_only_if_asked(falling, sent_at):
    compressor = Gaia(one_variable(4), falling=falling)
    compressor.bind_weights(np.ones(4, np.float32))
    # 0.006 is more than 0.01 / sqrt(3), not more than 0.01 / sqrt(2).
    counts = [compressor.compress(floats(change, 0, 0, 0)).arrays[0].size for change in (0.006, 0, 0, 0)]
    assert counts == [int(step == sent_at) for step in (1, 2, 3, 4)]
