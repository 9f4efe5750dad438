"""Everything goes, and nothing stays."""

import numpy as np
import pytest

from backends.frameworks.layout import Variable
from backends.strategies.compressors.dense import Float16, Uncompressed
from backends.strategies.message import DENSE, whole

VARIABLES = (Variable("kernel", (2, 3), 0, 6), Variable("bias", (2,), 6, 2))


def test_it_sends_the_gradient_uncopied():
    values = np.arange(8, dtype=np.float32)
    message = Uncompressed(VARIABLES).compress(values)
    assert message.kind == DENSE
    assert message.arrays[0] is values


def test_it_keeps_nothing_and_goes_on_from_nothing():
    compressor = Uncompressed(VARIABLES)
    compressor.compress(np.ones(8, np.float32))
    assert compressor.residual() is None
    assert compressor.state() == ()
    compressor.restore(())
    with pytest.raises(ValueError, match="Uncompressed keeps nothing"):
        compressor.restore((np.zeros(8, np.float32),))


def test_it_costs_four_bytes_an_element_whatever_the_link_can_take():
    head = '{"kind": "dense", "size": 8, "counts": [8]}'
    assert Uncompressed(VARIABLES).traffic_bytes() == len(head) + 32
    assert Uncompressed(VARIABLES).traffic_bytes(10.0) == len(head) + 32


SIZE = 1000
LONG = (Variable("kernel", (SIZE,), 0, SIZE),)


def test_float16_is_declared_lossy_and_keeps_nothing():
    compressor = Float16(LONG)
    compressor.compress(np.ones(SIZE, np.float32))
    assert compressor.lossy
    assert compressor.residual() is None


def test_float16_is_right_to_eleven_bits():
    values = np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
    # Below 2^-14 float16 has steps of 2^-24.
    np.testing.assert_allclose(whole(Float16(LONG).compress(values)), values, rtol=2**-11, atol=2**-25)


def test_float16_costs_two_bytes_an_element():
    head = '{"kind": "half", "size": 1000, "counts": [1000]}'
    assert Float16(LONG).traffic_bytes() == len(head) + 2000
