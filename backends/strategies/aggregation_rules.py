"""Rules of aggregation weigh gradients and average weights, on flat float32 arrays in place."""

from typing import Callable, Dict, Sequence, Tuple

import numpy as np

#: The largest weight of a gradient relative to one's own: the widest ratio of batches in DLion's
#: experiments (Table 3). Eq. 7 has no bound, and a worker with one sample would take a gradient of
#: hundreds at hundreds of times the learning rate.
MOST = 8.0


def equal(batch: int, own: float, usual: int, n: int) -> float:
    """1 / n: w <- w - (1/n) sum_j u_j (DLion, Eq. 4)."""
    return 1.0 / n


def by_own_batch(batch: int, own: float, usual: int, n: int) -> float:
    """(LBS_j / LBS_k) / n, for worker k's own update (DLion, Eq. 7); the ratio is at most ``MOST``.

    A parameter server uses the mean of the workers' batches. The factors of a round then sum to 1.
    """
    return min(MOST, batch / own) / n


def by_sample(batch: int, mean: float, usual: int, n: int) -> float:
    """LBS_j / sum LBS, from the mean batch of all members, so that every sample weighs the same.

    This variant of Eq. 7 is ours. In Eq. 7 the factors sum to mean / own: a worker with a small
    batch takes longer steps than the others, and replicas that were equal diverge.
    """
    return batch / (mean * n)


def by_rate(batch: int, own: float, usual: int, n: int) -> float:
    """r_j sum S / B = S_j / B (ScaDLES); B: the sum of usual batches."""
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

    The passive worker does it under its lock, and sends the result back.
    """
    average(first, second)
    second[:] = first


class PushSum:
    """One worker's ``x``, (parameters,) float32, and its push-sum ``weight``, initially 1 (SGP).

    Gradients are computed at z = x / weight and applied to x. The sums of x and of weight over all
    workers and all messages in transit are constant, whoever shares how often (Assran et al.).
    """

    def __init__(self, weights: np.ndarray) -> None:
        self.x = weights.copy()
        self.weight = 1.0

    def share(self, peers: int = 1) -> Tuple[np.ndarray, float]:
        """Split into ``peers`` + 1 equal parts; keep one, and return x and weight of the others."""
        part = 1.0 / (peers + 1)
        self.x *= part
        self.weight *= part
        return self.x, self.weight

    def take(self, x: np.ndarray, weight: float) -> None:
        """Add the part that a peer shared."""
        self.x += x
        self.weight += weight

    def debias(self, out: np.ndarray) -> None:
        """Write z = x / weight to ``out``, (parameters,) float32, such as a replica's weights."""
        np.divide(self.x, self.weight, out=out)

    def state(self) -> Tuple[np.ndarray, ...]:
        """For a checkpoint: x, not copied, and (1,) float64 of the weight."""
        return self.x, np.array([self.weight])

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Go on from ``state``. Raises ValueError for another shape."""
        if len(state) != 2 or state[0].shape != self.x.shape or state[1].shape != (1,):
            raise ValueError("not the push-sum state of %d parameters" % self.x.size)
        self.x[:] = state[0]
        self.weight = float(state[1][0])
