"""EF21: what differs most from what the receiver has."""

import numpy as np

from backends.strategies.compressors.ef21 import EF21
from backends.strategies.compressors.momentum_correction import MomentumCorrection
from backends.strategies.message import SPARSE, whole
from tests.backends.strategies.vectors import one_variable


def made(size, **options):
    return EF21(one_variable(size), **options)


def test_the_elements_that_changed_most_are_sent_as_differences():
    compressor = made(5, share=0.2)
    first, second = np.array([4, 3, 2, 1, 0], np.float32), np.array([4, 2, 2, 1, 0], np.float32)
    assert whole(compressor.compress(first)).tolist() == [4, 0, 0, 0, 0]
    assert compressor.residual().tolist() == [0, 3, 2, 1, 0]
    assert whole(compressor.compress(second)).tolist() == [0, 2, 0, 0, 0]
    assert whole(compressor.compress(-second)).tolist() == [-8, 0, 0, 0, 0]


def test_the_receiver_comes_to_a_gradient_that_stays():
    compressor, gradient = made(40, share=0.1), np.random.default_rng(0).normal(size=40).astype(np.float32)
    messages = [compressor.compress(gradient) for _ in range(10)]
    assert {message.kind for message in messages} == {SPARSE}
    np.testing.assert_array_equal(sum(map(whole, messages)), gradient)
    assert not compressor.residual().any()


def test_with_momentum_before_it_the_receiver_has_the_paper_s_average_of_gradients():
    """Algorithm 1, with everything sent: v <- (1 - eta) v + eta u, for eta = 1 - momentum."""
    momentum, average, received = 0.75, np.zeros(8), np.zeros(8)
    compressor = MomentumCorrection(made(8, share=1.0), momentum)
    for gradient in np.random.default_rng(1).normal(size=(20, 8)).astype(np.float32):
        received += whole(compressor.compress(gradient))
        average = momentum * average + (1 - momentum) * gradient
        np.testing.assert_allclose((1 - momentum) * received, average, rtol=1e-4, atol=1e-6)
