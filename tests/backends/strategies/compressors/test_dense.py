"""Everything goes, and nothing stays."""

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.compressors.dense import Float16, Uncompressed
from backends.strategies.message import DENSE, whole

VARIABLES = (Variable("kernel", (2, 3), 0, 6), Variable("bias", (2,), 6, 2))


def test_it_sends_the_gradient_uncopied():
    values = np.arange(8, dtype=np.float32)
    message = Uncompressed(VARIABLES).compress(values)
    assert message.kind == DENSE
    assert message.arrays[0] is values


SIZE = 1000
LONG = (Variable("kernel", (SIZE,), 0, SIZE),)


def test_float16_is_right_to_eleven_bits():
    values = np.random.default_rng(0).normal(size=SIZE).astype(np.float32)
    # Below 2^-14 float16 has steps of 2^-24.
    np.testing.assert_allclose(whole(Float16(LONG).compress(values)), values, rtol=2**-11, atol=2**-25)
