"""Dynamic batching deals out batch sizes by speed (DLion, Hong and Chandra, 2021, section 3.2)."""

from typing import List, NamedTuple, Sequence, Tuple

import numpy as np

from backends.data.dataset import apportion
from backends.strategies.recent_rows import RecentRows

#: Batch sizes closer together than this do not show the cost of one more sample: noise is larger.
SPREAD = 1.25
#: Iterations from which a worker's speed is estimated: few, so that a change of it is noticed.
WINDOW = 20
#: Samples from which batch normalisation can learn.
LEAST = 2


class Growth(NamedTuple):
    """When and by how much a global batch grows; sizes in samples, intervals in iterations.

    In the warm-up, ``warmup_samples`` (C_warmup) are added every ``warmup_every`` until the batch
    exceeds ``warmup_share`` of the training set. Then it is multiplied by ``speedup_factor``
    (C_speedup) every ``speedup_every`` until it exceeds ``speedup_share``.
    The paper gives the shares alone; the other values are ours, after its Fig. 5.
    """

    warmup_samples: int = 32
    warmup_every: int = 25
    warmup_share: float = 0.01
    speedup_factor: float = 2.0
    speedup_every: int = 100
    speedup_share: float = 0.1


GROWTH = Growth()


class GlobalBatch:
    """The controller of the global batch size, in samples of all workers in one iteration.

    Raises ValueError for a size below 1, and where it could not grow.
    """

    def __init__(self, size: int, training_samples: int, growth: Growth = GROWTH) -> None:
        whole = min(size, growth.warmup_samples, growth.warmup_every, growth.speedup_every)
        if whole < 1 or growth.speedup_factor <= 1.0:
            raise ValueError("a global batch of %d cannot grow by %s" % (size, growth))
        self.size = size
        self._growth = growth
        self._warm = growth.warmup_share * training_samples
        self._most = growth.speedup_share * training_samples
        self._waited = 0

    def advance(self) -> bool:
        """Count an iteration; return whether the size, and so the local batches, changed."""
        if self.size > self._most:
            return False
        warm = self.size > self._warm
        self._waited += 1
        if self._waited < (self._growth.speedup_every if warm else self._growth.warmup_every):
            return False
        self._waited = 0
        if warm:
            self.size = max(self.size + 1, int(self.size * self._growth.speedup_factor))
        else:
            self.size += self._growth.warmup_samples
        return True

    def state(self) -> Tuple[np.ndarray, ...]:
        """For a checkpoint: (2,) int64 of the size and the iterations since it last grew."""
        return (np.array([self.size, self._waited], np.int64),)

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Go on from ``state``. Raises ValueError for another shape."""
        if len(state) != 1 or state[0].shape != (2,):
            raise ValueError("not the state of a global batch: a size and a number of iterations")
        self.size, self._waited = int(state[0][0]), int(state[0][1])


class Cost(NamedTuple):
    """Seconds of an iteration: fixed_s + sample_s x batch."""

    fixed_s: float
    sample_s: float


class Throughput(RecentRows):
    """The current cost of one worker's iterations, by least squares over the last ``window``."""

    def __init__(self, window: int = WINDOW) -> None:
        super().__init__(window, 2)

    def add_iteration(self, batch: int, seconds: float) -> None:
        """Record an iteration. Raises ValueError unless both numbers are positive."""
        if batch < 1 or not 0.0 < seconds < float("inf"):
            raise ValueError("an iteration over %s samples cannot take %s s" % (batch, seconds))
        self.add((batch, seconds))

    def cost(self) -> Cost:
        """The line fitted to the recorded iterations. Raises ValueError before the first.

        It passes through the origin where batch sizes differ too little (``SPREAD``) or where noise
        would make a coefficient negative.
        """
        if not len(self.rows):
            raise ValueError("no iteration has been timed yet")
        batch, seconds = self.rows.T
        if batch.max() >= SPREAD * batch.min():
            apart = batch - batch.mean()
            sample_s = apart.dot(seconds) / apart.dot(apart)
            fixed_s = seconds.mean() - sample_s * batch.mean()
            if sample_s > 0.0 and fixed_s >= 0.0:
                return Cost(float(fixed_s), float(sample_s))
        return Cost(0.0, float(batch.dot(seconds) / batch.dot(batch)))


def powers(costs: Sequence[Cost], global_batch: int) -> List[float]:
    """RCP_i of each worker: samples processed while all workers compute the global batch.

    It is 0 where the fixed part takes all of that time.
    The paper leaves the unit of time open. With this one Eq. 5 lets all workers end an iteration
    together, approximately where the fixed part of one worker exceeds that time.
    """
    fixed = sum(cost.fixed_s / cost.sample_s for cost in costs)
    unit_s = (global_batch + fixed) / sum(1.0 / cost.sample_s for cost in costs)
    return [max(0.0, unit_s - cost.fixed_s) / cost.sample_s for cost in costs]


def local_batches(global_batch: int, rcp: Sequence[float]) -> List[int]:
    """LBS_i = GBS RCP_i / sum RCP (Eq. 5), by largest remainder; none is below LEAST if
    there are so many.

    The local batches sum to the global batch.
    Raises ValueError for a global batch smaller than the number of workers, and unless all powers
    are finite and not negative, and their sum is positive.
    """
    share = np.array(rcp, np.float64)
    if not np.all(np.isfinite(share)) or np.any(share < 0.0) or not 0.0 < share.sum() < float("inf"):
        raise ValueError("batches in proportion to powers need some that are positive, got %s" % list(rcp))
    if global_batch < share.size:
        raise ValueError(
            "a global batch of %d leaves nothing for some of %d workers; give one sample each at least"
            % (global_batch, share.size)
        )
    sizes = apportion(global_batch, global_batch * (share / share.sum()))
    while sizes.min() < LEAST and global_batch >= LEAST * sizes.size:
        sizes[sizes.argmax()] -= 1
        sizes[sizes.argmin()] += 1
    return [int(size) for size in sizes]
