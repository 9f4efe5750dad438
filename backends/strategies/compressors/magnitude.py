"""Magnitudes of a long vector are computed block by block, so that they stay in the cache."""

import math
from typing import Any, Iterator, Tuple

import numpy as np

#: Elements of a block: with its absolute values it takes 256 KiB.
BLOCK = 1 << 15
#: Minimum number of elements in a sample of a large vector, and spare ones that ``likely`` adds.
SAMPLE = 1 << 14
SPARE = 16


def blocks(values: np.ndarray) -> Iterator[Tuple[int, np.ndarray]]:
    """The start of each block of (n,) float32, and its absolute values, valid until the next."""
    room = np.empty(min(BLOCK, values.size), np.float32)
    for start in range(0, values.size, BLOCK):
        part = values[start : start + BLOCK]
        yield start, np.abs(part, out=room[: part.size])


def total(values: np.ndarray) -> float:
    return sum(float(magnitudes.sum()) for _, magnitudes in blocks(values))


def greatest(values: np.ndarray) -> float:
    """The largest magnitude; NaN where one is NaN, 0 for an empty vector."""
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def above(values: np.ndarray, floor: Any) -> np.ndarray:
    """Ascending indices of the magnitudes that are ``floor`` or more."""
    found = [np.flatnonzero(magnitudes >= floor) + start for start, magnitudes in blocks(values)]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Ascending indices of the 1 <= ``count`` <= n largest of (n,) float32; ties are arbitrary."""
    found = _candidates(values, count)
    magnitudes = np.abs(values[found])
    least = np.partition(magnitudes, found.size - count)[found.size - count]
    chosen = ~(magnitudes <= least)  # NaN is sorted as the largest
    chosen[np.flatnonzero(magnitudes == least)[: count - np.count_nonzero(chosen)]] = True
    result: np.ndarray = found[chosen]
    return result


def _candidates(values: np.ndarray, count: int) -> np.ndarray:
    """Ascending indices of the largest elements, ``count`` or more."""
    step = values.size // SAMPLE
    if step > 1:
        estimate = likely(np.abs(values[::step]), count / step)
        found = above(values, estimate) if estimate else np.empty(0, np.int64)
        if found.size >= count:
            return found
    return np.arange(values.size)


def likely(sample: np.ndarray, count: float) -> float:
    """A magnitude that at least as many elements as wanted nearly always exceed; 0 if unknown.

    sample: (m,) magnitudes of the vector; only these are partitioned.
    count: the expected number of wanted elements in the sample.
    The estimate includes four standard deviations more of the sample than ``count``.
    """
    return _from_above(sample, int(count + 4.0 * math.sqrt(count)) + SPARE)


def few_exceed(sample: np.ndarray, count: float) -> float:
    """A magnitude that no more elements than wanted nearly always exceed; see ``likely``."""
    return _from_above(sample, int(count - 2.0 * math.sqrt(count)))


def _from_above(sample: np.ndarray, count: int) -> float:
    """The magnitude that ``count`` of a sample exceed; 0 if the sample has no more."""
    place = sample.size - count
    if place <= 0:
        return 0.0
    sample.partition(place)
    return float(sample[place])
