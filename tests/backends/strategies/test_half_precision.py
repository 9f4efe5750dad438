"""Float16 by integers is numpy's float16, but for what lies halfway between two."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.strategies.compressors.magnitude import BLOCK
from backends.strategies.half_precision import decode, encode

EVERY = np.arange(1 << 16, dtype=np.uint16)
#: The least there is and what is nearer to it than to 0, where normal ones begin, and the greatest.
EDGES = [0.0, -0.0, 3 * 2.0**-26, 2.0**-24, 2.0**-15, 2.0**-14 - 2.0**-24, 2.0**-14, 0.5, 65504.0, 65519.0]


def numpys(values):
    return values.astype(np.float16).view(np.uint16)


@settings(max_examples=60, deadline=None)
@given(
    size=some.sampled_from([0, 1, 1000, BLOCK, 2 * BLOCK + 3]),
    scale=some.sampled_from([1e-12, 1e-7, 1e-5, 1e-3, 1.0, 1e3]),
    seed=some.integers(0, 1000),
)
def test_it_rounds_as_numpy_does(size, scale, seed):
    values = (scale * np.random.default_rng(seed).normal(size=size)).astype(np.float32)
    ours, theirs = encode(values), numpys(values)
    halfway = np.abs(decode(ours) - values) == np.abs(decode(theirs) - values)
    np.testing.assert_array_equal(ours[~halfway], theirs[~halfway])


@pytest.mark.parametrize("sign", [1, -1])
def test_it_rounds_as_numpy_does_at_every_edge(sign):
    values = sign * np.array(EDGES, np.float32)
    np.testing.assert_array_equal(encode(values), numpys(values))


def test_every_float16_comes_back_as_it_was():
    values = EVERY.view(np.float16).astype(np.float32)
    np.testing.assert_array_equal(decode(EVERY), values)
    real = np.isfinite(values)
    np.testing.assert_array_equal(encode(values[real]), EVERY[real])


def test_what_is_no_number_stays_none():
    assert np.isnan(decode(encode(np.array([1.0, np.nan], np.float32)))).tolist() == [False, True]
