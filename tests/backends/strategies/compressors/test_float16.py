"""Everything goes in half of the bytes, and what does not fit them is lost, as declared."""

import numpy as np

from backends.frameworks.base import Variable
from backends.strategies.compressors.float16 import Float16
from backends.strategies.message import whole

SIZE = 1000
VARIABLES = (Variable("kernel", (SIZE,), 0, SIZE),)


def test_it_is_declared_lossy_and_keeps_nothing():
    compressor = Float16(VARIABLES)
    compressor.compress(np.ones(SIZE, np.float32))
    assert compressor.lossy
    assert compressor.residual() is None


def test_it_is_right_to_eleven_bits():
    values = np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
    # Below 2^-14 float16 has steps of 2^-24.
    np.testing.assert_allclose(whole(Float16(VARIABLES).compress(values)), values, rtol=2**-11, atol=2**-25)


def test_it_costs_two_bytes_an_element():
    head = '{"kind": "half", "size": 1000, "counts": [1000]}'
    assert Float16(VARIABLES).traffic_bytes() == len(head) + 2000
