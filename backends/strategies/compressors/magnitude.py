"""Magnitudes of a long vector are computed block by block, so that they never leave the cache."""

import math
from typing import Any, Iterator, Tuple

import numpy as np

#: Elements of a block: with room for its absolute values it takes 256 KiB.
BLOCK = 1 << 15
#: Elements, and of those to be found, that a sample of a large vector should have.
SAMPLE = 1 << 14
SPARE = 16


def blocks(values: np.ndarray) -> Iterator[Tuple[int, np.ndarray]]:
    """Where each block of (n,) float32 begins, and its absolute values, which last until the
    next.
    """
    room = np.empty(min(BLOCK, values.size), np.float32)
    for start in range(0, values.size, BLOCK):
        part = values[start : start + BLOCK]
        yield start, np.abs(part, out=room[: part.size])


def total(values: np.ndarray) -> float:
    """The sum of all."""
    return sum(float(magnitudes.sum()) for _, magnitudes in blocks(values))


def greatest(values: np.ndarray) -> float:
    """The largest of all; NaN where one is, 0 of none."""
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def above(values: np.ndarray, floor: Any) -> np.ndarray:
    """Ascending indices of those from ``floor`` on."""
    found = [np.flatnonzero(magnitudes >= floor) + start for start, magnitudes in blocks(values)]
    return np.concatenate(found) if found else np.empty(0, np.int64)


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Ascending indices of the ``count`` largest of (n,) float32; 1 <= count <= n. Of equal ones
    any.
    """
    found = _candidates(values, count)
    magnitudes = np.abs(values[found])
    least = np.partition(magnitudes, found.size - count)[found.size - count]
    chosen = ~(magnitudes <= least)  # and what is no number, which is sorted as the largest
    chosen[np.flatnonzero(magnitudes == least)[: count - np.count_nonzero(chosen)]] = True
    result: np.ndarray = found[chosen]
    return result


def _candidates(values: np.ndarray, count: int) -> np.ndarray:
    """Ascending indices of ``count`` elements or more, and of all that are as large as any of
    them.
    """
    step = values.size // SAMPLE
    if step > 1:
        guess = likely(np.abs(values[::step]), count / step)
        found = above(values, guess) if guess else np.empty(0, np.int64)
        if found.size >= count:
            return found
    return np.arange(values.size)


def likely(sample: np.ndarray, count: float) -> float:
    """A value that at least as many elements as wanted nearly always exceed; 0 if none is known.

    sample: (m,) magnitudes of the vector, which are partitioned instead of all of them.
    count: how many of the sample the wanted elements should be.

    As many of the sample as it should have, and four standard deviations more.
    """
    return _from_above(sample, int(count + 4.0 * math.sqrt(count)) + SPARE)


def few_exceed(sample: np.ndarray, count: float) -> float:
    """The same for what no more than so many elements exceed, nearly always: two standard
    deviations fewer of it do.
    """
    return _from_above(sample, int(count - 2.0 * math.sqrt(count)))


def _from_above(sample: np.ndarray, count: int) -> float:
    """The largest of a sample that is exceeded by ``count`` of it; 0 if it has no more."""
    place = sample.size - count
    if place <= 0:
        return 0.0
    sample.partition(place)
    return float(sample[place])
