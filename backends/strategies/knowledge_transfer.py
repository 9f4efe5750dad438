"""Knowledge transfer periodically sends the best worker's weights to others (DLion, 3.4)."""

from typing import Dict, Tuple

import numpy as np

from backends.optimizers.sgd import BLOCK
from backends.strategies.recent_rows import RecentRows

#: Iterations from one transfer to the next (section 5.1.4).
PERIOD = 100
#: The lambda of section 3.4: 0 changes nothing, 1 replaces the weights.
STRENGTH = 0.75
#: The l of the "last l losses"; the paper gives no number.
WINDOW = 20

BEST_TO_ALL, BEST_TO_WORST = "best-to-all", "best-to-worst"


class LossWindow(RecentRows):
    """The last ``window`` losses of one worker."""

    def __init__(self, window: int = WINDOW) -> None:
        super().__init__(window)

    def mean(self) -> float:
        """The mean loss; infinite before the first."""
        return float(self.rows.mean()) if len(self.rows) else float("inf")


def due(iteration: int, period: int = PERIOD) -> bool:
    """Whether knowledge is transferred after ``iteration``, counted from 1."""
    return iteration > 0 and iteration % period == 0


def best(means: Dict[str, float]) -> str:
    """The worker with the smallest mean loss; every worker that asks gets the same answer."""
    return min(means, key=lambda worker: _rank(worker, means[worker]))


def worst(means: Dict[str, float]) -> str:
    """The worker with the greatest mean loss; never the best where there are two."""
    return max(means, key=lambda worker: _rank(worker, means[worker]))


def takers(means: Dict[str, float], receivers: str = BEST_TO_ALL) -> Tuple[str, ...]:
    """The workers that pull the best worker's weights: all others, or only the worst."""
    giver = best(means)
    chosen = [worst(means)] if receivers == BEST_TO_WORST else sorted(means)
    return tuple(worker for worker in chosen if worker != giver)


def merge(weights: np.ndarray, received: np.ndarray, strength: float = STRENGTH) -> None:
    """w <- w - strength (w - w_best), in place; both (parameters,) float32."""
    for start in range(0, weights.size, BLOCK):
        block = slice(start, start + BLOCK)
        part = weights[block]
        part *= 1.0 - strength
        part += strength * received[block]


def _rank(worker: str, mean: float) -> Tuple[float, str]:
    # NaN counts as the largest loss; ties are resolved by name.
    return (float("inf") if np.isnan(mean) else mean), worker
