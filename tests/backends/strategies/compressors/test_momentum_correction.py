"""Momentum before something is left out."""

import numpy as np
import pytest

from backends.frameworks.layout import Variable
from backends.strategies.compressors.registry import CompressorSpec
from backends.strategies.message import whole

VARIABLES = (Variable("w", (4,), 0, 4),)


def test_with_everything_sent_the_sum_of_velocities_is_that_of_one_server() -> None:
    made = CompressorSpec.from_text("top-k:share=1").build(VARIABLES, 0.5)
    weights, velocity, plain = np.zeros(4), np.zeros(4), np.zeros(4)
    for gradient in np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32):
        weights -= whole(made.compress(gradient))
        velocity = 0.5 * velocity + gradient
        plain -= velocity
    np.testing.assert_allclose(weights, plain, rtol=1e-5)


def test_what_was_not_sent_keeps_its_momentum() -> None:
    made = CompressorSpec.from_text("top-k:share=0.25").build(VARIABLES, 0.5)
    first = whole(made.compress(np.array([4, 1, 0, 0], np.float32)))
    np.testing.assert_array_equal(first, [4, 0, 0, 0])
    second = whole(made.compress(np.array([0, 1, 0, 0], np.float32)))
    np.testing.assert_array_equal(second, [0, 2.5, 0, 0])  # 1 and 1.5: the first, and half of it beside the second
    np.testing.assert_array_equal(made.residual(), [2, 0, 0, 0])


def test_a_restored_one_goes_on_as_the_first_would_have() -> None:
    made, again = (
        CompressorSpec.from_text("top-k:share=0.25").build(VARIABLES, 0.5),
        CompressorSpec.from_text("top-k:share=0.25").build(VARIABLES, 0.5),
    )
    made.compress(np.array([4, 1, 0, 0], np.float32))
    again.restore(made.state())
    gradient = np.array([0, 1, 2, 0], np.float32)
    np.testing.assert_array_equal(whole(again.compress(gradient)), whole(made.compress(gradient)))
    with pytest.raises(ValueError, match="MomentumCorrection"):
        again.restore(made.state()[:-1])


def test_only_what_leaves_something_for_later_keeps() -> None:
    texts = ("dense", "float16", "top-k", "adaptive:of=layer-drop")
    assert [CompressorSpec.from_text(text).keeps_residual for text in texts] == [False, False, True, True]
