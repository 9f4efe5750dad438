"""Streams bring samples at the edge: batches, weights, buffers and injection (ScaDLES)."""

import collections
import math
from typing import Deque, List, Sequence, Tuple, Union

import numpy as np

Seed = Union[int, Sequence[int]]

#: The paper's sample sets of stream rates: kind, mean and standard deviation in samples a second.
DISTRIBUTIONS = {
    "S1": ("uniform", 38.0, 24.0),
    "S2": ("uniform", 300.0, 112.0),
    "S1'": ("normal", 64.0, 24.0),
    "S2'": ("normal", 256.0, 28.0),
}
#: Samples a second that any device gets: S1 as it stands reaches below 0.
LEAST_RATE = 1.0


def draw_rates(distribution: str, devices: int, seed: Seed) -> List[float]:
    """The stream rate of each device, in samples a second. Raises ValueError for an unknown
    distribution.
    """
    if distribution not in DISTRIBUTIONS:
        raise ValueError(
            "unknown distribution of stream rates %r; known: %s" % (distribution, ", ".join(DISTRIBUTIONS))
        )
    kind, mean, deviation = DISTRIBUTIONS[distribution]
    random = np.random.RandomState(seed)
    half = math.sqrt(3.0) * deviation
    if kind == "uniform":
        drawn = random.uniform(mean - half, mean + half, devices)
    else:
        drawn = random.normal(mean, deviation, devices)
    return [max(LEAST_RATE, float(rate)) for rate in drawn]


def batches(rates: Sequence[float]) -> List[int]:
    """What arrives at each device in a second, at least 1: so nobody waits for samples longer
    than others.
    """
    return [max(1, int(rate + 0.5)) for rate in rates]


def shares(rates: Sequence[float]) -> List[float]:
    """r_i = S_i / sum S, by which the gradients are weighed: g = sum r_i g_i."""
    total = sum(rates)
    return [rate / total for rate in rates]


def rate_factor(rates: Sequence[float], reference_batch: int) -> float:
    """sum S / B, by which the learning rate is multiplied; B: the batch it was chosen for."""
    return sum(rates) / reference_batch


class Persistence:
    """Indices of samples that wait for training, oldest first: every one until it is taken, O(S
    T) of them.
    """

    def __init__(self) -> None:
        self._waiting: Deque[int] = collections.deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def arrive(self, indices: np.ndarray) -> None:
        """(samples,) integers, oldest first."""
        self._waiting.extend(indices.tolist())

    def take(self, count: int) -> np.ndarray:
        """The oldest ``count``, or all where there are fewer; int64, no longer waiting."""
        return np.array([self._waiting.popleft() for _ in range(min(count, len(self)))], np.int64)

    def state(self) -> Tuple[np.ndarray, ...]:
        """For a checkpoint: (waiting,) int64, of as many as there are now."""
        return (np.array(list(self._waiting), np.int64),)

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Go on from ``state``. Raises ValueError where it is of another form."""
        if len(state) != 1 or state[0].ndim != 1:
            raise ValueError("not the state of a stream's buffer: a list of samples")
        self._waiting.clear()
        self.arrive(state[0])


class Truncation(Persistence):
    """The newest second of a stream of ``rate`` samples a second, O(S): what is older is dropped."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._waiting = collections.deque(maxlen=max(1, int(math.ceil(rate))))


def sharing(devices: int, alpha: float, seed: Seed) -> Tuple[int, ...]:
    """The devices that share samples with all others now: a random fraction alpha of 0 to devices
    - 1, ascending.

    All who draw with one seed, such as (seed, step), agree. At least one unless alpha is 0.
    Raises ValueError for an alpha that is no fraction.
    """
    count = _part(alpha, devices)
    chosen = np.random.RandomState(seed).permutation(devices)[: count or int(alpha > 0.0)]
    return tuple(sorted(int(device) for device in chosen))


def shared(samples: np.ndarray, beta: float, seed: Seed) -> np.ndarray:
    """What a device that shares sends of its (samples,): a random fraction beta, in their order.

    Raises ValueError for a beta that is no fraction.
    """
    chosen = np.random.RandomState(seed).permutation(len(samples))[: _part(beta, len(samples))]
    return samples[np.sort(chosen)]


def _part(fraction: float, whole: int) -> int:
    if not 0.0 <= fraction <= 1.0:
        raise ValueError("alpha and beta of data injection lie between 0 and 1, got %s" % fraction)
    return int(fraction * whole + 0.5)
