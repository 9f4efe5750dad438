"""Aggregation weighs gradients and averages weights, in place on flat float32 arrays."""

from typing import Callable, Dict

import numpy as np

#: The largest weight of a gradient relative to one's own. Eq. 7 has no bound: a worker with one
#: sample would take a gradient of hundreds at hundreds of times the learning rate. The widest ratio
#: of batches in DLion's experiments is that of workers with 8 accelerators and with 1 (Table 3); up
#: to it the equation holds unchanged.
MOST = 8.0


def equal(batch: int, own: float, usual: int, n: int) -> float:
    """1 / n: w <- w - (1/n) sum_j u_j (DLion, Eq. 4)."""
    return 1.0 / n


def by_own_batch(batch: int, own: float, usual: int, n: int) -> float:
    """(LBS_j / LBS_k) / n, for worker k's own update (DLion, Eq. 7); the ratio is at most ``MOST``.

    A parameter server has no batch of its own and uses the mean of the workers' batches. The
    factors of a round then sum to 1, as if one process computed all samples.
    """
    return min(MOST, batch / own) / n


def by_sample(batch: int, mean: float, usual: int, n: int) -> float:
    """LBS_j / sum LBS, from the mean batch of all members, so that every sample weighs the same.

    The update is that of one device with all samples. This variant of Eq. 7 is ours: in Eq. 7 the
    factors sum to mean / own, so that a worker with a small batch takes longer steps than the
    others, and replicas that were equal diverge.
    """
    return batch / (mean * n)


def by_rate(batch: int, own: float, usual: int, n: int) -> float:
    """r_j sum S / B = S_j / B, B the sum of usual batches (ScaDLES).

    The learning rate was chosen for B.
    """
    return batch / (usual * n)


#: Aggregations that compare a batch with the mean of all members' batches, not with one's own.
WITH_MEAN = frozenset(["samples"])

#: The factor of one of n workers' gradients, from its batch, the batch it is compared with, and the
#: usual batch.
FACTORS: Dict[str, Callable[[int, float, int, int], float]] = {
    "mean": equal,
    "weighted": by_own_batch,
    "samples": by_sample,
    "rates": by_rate,
}


def average(weights: np.ndarray, received: np.ndarray) -> None:
    """w <- (w + received) / 2, in place, for two arrays of one shape (Crossover-SGD, Alg. 1)."""
    weights += received
    weights *= 0.5


def average_pair(first: np.ndarray, second: np.ndarray) -> None:
    """Set both arrays to their mean, which keeps their sum (AD-PSGD, Lian et al., 2018, Alg. 1).

    Atomicity needs the lock of the passive worker. It averages the received weights with its own,
    and sends the result back from the receive buffer.
    """
    average(first, second)
    second[:] = first
