"""Push-sum averages over directed graphs, for stochastic gradient push (SGP, Assran et al.)."""

from typing import Sequence, Tuple

import numpy as np


class PushSum:
    """One worker's ``x``, (parameters,) float32, and its push-sum ``weight``, initially 1.

    Gradients are computed at z = x / weight and applied to x. The sums of x and of weight over all
    workers and all messages in transit are constant, whoever shares how often.
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
        """Go on from ``state``. Raises ValueError where it is of another shape."""
        if len(state) != 2 or state[0].shape != self.x.shape or state[1].shape != (1,):
            raise ValueError("not the push-sum state of %d parameters" % self.x.size)
        self.x[:] = state[0]
        self.weight = float(state[1][0])
