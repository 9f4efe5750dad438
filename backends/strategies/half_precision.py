"""Float16 is converted by integer arithmetic here.

numpy's own conversion takes 80 ns an element where it is below 6e-5, as gradients are.
"""

import functools

import numpy as np

#: Elements converted at once: with room for their bits twice they stay in the cache.
BLOCK = 1 << 15
#: The greatest float16.
_MOST = 65504.0
#: Bit patterns of float32: all but the sign, and 2^-14, the least that is normal in float16.
_MAGNITUDE, _NORMAL = 0x7FFFFFFF, 0x38800000
#: What the exponents differ by, less half of the last bit that stays; 13 bits of the fraction go.
_REBIAS, _DROPPED = (112 << 23) - 0x1000, 13
#: The bits of 0.5, whose last one is worth as much as that of what is not normal: adding 0.5
#: rounds to that.
_HALF = 0x3F000000


def encode(values: np.ndarray) -> np.ndarray:
    """(n,) uint16 of (n,) float32, rounded to the nearest; what is beyond its range becomes the
    greatest there is.
    """
    if not np.dot(values, values) < _MOST * _MOST:  # one may be beyond, or no number
        values = np.clip(values, -_MOST, _MOST)
        if np.isnan(values).any():
            return values.astype(np.float16).view(np.uint16)
    encoded = np.empty(values.size, np.uint16)
    rooms = [np.empty(min(BLOCK, values.size), np.int32) for _ in range(2)]
    for start in range(0, values.size, BLOCK):
        bits = values[start : start + BLOCK].view(np.int32)
        encoded[start : start + BLOCK] = _encoded(bits, *(room[: bits.size] for room in rooms))
    return encoded


def _encoded(bits: np.ndarray, normal: np.ndarray, other: np.ndarray) -> np.ndarray:
    """A block of bit patterns, in ``normal``; ``other`` is room to work in.

    Two ways lead to a float16: to drop bits of the fraction, which falls short of what is not
    normal, and to add 0.5, which is cut off where the normal ones begin. The greater of the two
    is right.
    """
    np.bitwise_and(bits, np.int32(_MAGNITUDE), out=normal)
    tiny = np.minimum(normal, np.int32(_NORMAL), out=other).view(np.float32)
    tiny += np.float32(0.5)
    other -= np.int32(_HALF)
    normal -= np.int32(_REBIAS)
    normal >>= _DROPPED
    np.maximum(normal, other, out=normal)
    np.right_shift(bits, 16, out=other)
    other &= np.int32(0x8000)
    normal |= other
    return normal


def decode(encoded: np.ndarray) -> np.ndarray:
    """A new (n,) float32 of (n,) uint16."""
    values: np.ndarray = _values()[encoded]
    return values


@functools.lru_cache(maxsize=1)
def _values() -> np.ndarray:
    """Every float16 there is, as float32."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
