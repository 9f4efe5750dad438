"""How what workers send is merged: gradients into weights, and weights with weights; in place on flat float32."""

from typing import List, Sequence, Tuple

import numpy as np

from backends.optimise import BLOCK


def mean_update(weights, gradients, rate=1.0):
    # type: (np.ndarray, Sequence[np.ndarray], float) -> None
    """w <- w - rate (1/n) sum_j g_j (DLion, Eq. 4). All (parameters,); rate 1 where gradients have theirs."""
    update(weights, gradients, [1.0 / len(gradients)] * len(gradients), rate)


def weighted_update(weights, gradients, batches, k, rate=1.0):
    # type: (np.ndarray, Sequence[np.ndarray], Sequence[int], int, float) -> None
    """w_k <- w_k - rate (1/n) sum_j (LBS_j / LBS_k) g_j (DLion, Eq. 7), for the worker at position k."""
    update(weights, gradients, batch_factors(batches, k), rate)


def batch_factors(batches, k):
    # type: (Sequence[int], int) -> List[float]
    """What worker k multiplies each worker's gradient by in Eq. 7; local batches, all positive."""
    return [(batch / batches[k]) / len(batches) for batch in batches]


def update(weights, gradients, factors, rate=1.0):
    # type: (np.ndarray, Sequence[np.ndarray], Sequence[float], float) -> None
    """w <- w - rate sum_j factors_j g_j, in place; all arrays (parameters,)."""
    for start in range(0, weights.size, BLOCK):
        block = slice(start, start + BLOCK)
        part = weights[block]
        for gradient, factor in zip(gradients, factors):
            part -= rate * factor * gradient[block]


def average(weights, received):
    # type: (np.ndarray, np.ndarray) -> None
    """w <- (w + received) / 2, in place; both of one shape, such as a view of a segment."""
    weights += received
    weights *= 0.5


def average_segments(weights, segments, received):
    # type: (np.ndarray, Sequence[Tuple[int, int]], Sequence[np.ndarray]) -> None
    """Average each segment [start, end) of (parameters,) with what one peer sent of it (Crossover-SGD, Alg. 1)."""
    for (start, end), values in zip(segments, received):
        average(weights[start:end], values)


def average_pair(first, second):
    # type: (np.ndarray, np.ndarray) -> None
    """Both become their mean, so that their sum stays (AD-PSGD, Lian et al., 2018, Alg. 1).

    To be atomic it needs the lock of the passive worker, who averages what came with its own weights and sends the
    result back from the buffer it came in.
    """
    average(first, second)
    second[:] = first
