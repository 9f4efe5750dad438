"""Aggregation weighs gradients and averages weights, in place on flat float32 arrays."""

from typing import Callable, Dict

import numpy as np

#: The most that a gradient may weigh beside one's own. Eq. 7 has no bound: one sample beside
#: hundreds would take steps hundreds of times as long as the learning rate says. The widest ratio
#: of batches that DLion was tried with is that of workers with 8 accelerators and with 1 (Table
#: 3), up to which the equation holds as it stands.
MOST = 8.0


def equal(batch: int, own: float, usual: int, n: int) -> float:
    """1 / n: w <- w - (1/n) sum_j u_j (DLion, Eq. 4)."""
    return 1.0 / n


def by_own_batch(batch: int, own: float, usual: int, n: int) -> float:
    """(LBS_j / LBS_k) / n, for worker k's own update (DLion, Eq. 7); the ratio is at most ``MOST``.

    A parameter server has no batch of its own: with the mean of the workers' the factors of a
    round sum to 1, and its update is that of one process with all their samples.
    """
    return min(MOST, batch / own) / n


def by_sample(batch: int, mean: float, usual: int, n: int) -> float:
    """LBS_j / sum LBS, from the mean batch of all members: every sample weighs the same, as on
    one device with all.

    Ours, with what Eq. 7 is for and without what it does besides: there the sum of the weights is
    mean / own, so that who has small batches takes longer steps than the others, and weights that
    were alike drift apart.
    """
    return batch / (mean * n)


def by_rate(batch: int, own: float, usual: int, n: int) -> float:
    """r_j sum S / B = S_j / B, B the batches for which the rate was chosen together (ScaDLES)."""
    return batch / (usual * n)


#: Merges that compare a batch with the mean of all members' batches, where others take one's own.
WITH_MEAN = frozenset(["samples"])

#: What one of n workers' gradients is multiplied by, from samples: of its batch, of the one that
#: it is compared with, and of the usual one.
FACTORS: Dict[str, Callable[[int, float, int, int], float]] = {
    "mean": equal,
    "weighted": by_own_batch,
    "samples": by_sample,
    "rates": by_rate,
}


def average(weights: np.ndarray, received: np.ndarray) -> None:
    """w <- (w + received) / 2, in place; both of one shape, such as a segment (Crossover-SGD,
    Alg. 1).
    """
    weights += received
    weights *= 0.5


def average_pair(first: np.ndarray, second: np.ndarray) -> None:
    """Both become their mean, so that their sum stays (AD-PSGD, Lian et al., 2018, Alg. 1).

    To be atomic it needs the lock of the passive worker, who averages what came with its own
    weights and sends the result back from the buffer it came in.
    """
    average(first, second)
    second[:] = first
