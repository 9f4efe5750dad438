"""Streams deliver samples at the edge: batches, weights, buffers and injection (ScaDLES)."""

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
#: Minimum samples a second of a device: the distribution S1 reaches below 0.
LEAST_RATE = 1.0


def draw_rates(distribution: str, devices: int, seed: Seed) -> List[float]:
    """The stream rate of each device, in samples a second.

    Raises ValueError for an unknown distribution.
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
    """Samples that arrive at each device in a second, at least 1."""
    return [max(1, int(rate + 0.5)) for rate in rates]


def shares(rates: Sequence[float]) -> List[float]:
    """r_i = S_i / sum S, the weights of the gradients: g = sum r_i g_i."""
    total = sum(rates)
    return [rate / total for rate in rates]


def rate_factor(rates: Sequence[float], reference_batch: int) -> float:
    """sum S / B, the factor on the learning rate; B: the batch it was chosen for."""
    return sum(rates) / reference_batch


class Persistence:
    """A buffer that keeps every sample until it is taken, O(S T); indices, oldest first."""

    def __init__(self) -> None:
        self._waiting: Deque[int] = collections.deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def arrive(self, indices: np.ndarray) -> None:
        """Add (samples,) integers, oldest first."""
        self._waiting.extend(indices.tolist())

    def take(self, count: int) -> np.ndarray:
        """Remove and return the oldest ``count``, or all where there are fewer; int64."""
        return np.array([self._waiting.popleft() for _ in range(min(count, len(self)))], np.int64)

    def state(self) -> Tuple[np.ndarray, ...]:
        """For a checkpoint: (waiting,) int64, of the present number of samples."""
        return (np.array(list(self._waiting), np.int64),)

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Go on from ``state``. Raises ValueError for another form."""
        if len(state) != 1 or state[0].ndim != 1:
            raise ValueError("not the state of a stream's buffer: a list of samples")
        self._waiting.clear()
        self.arrive(state[0])


class Truncation(Persistence):
    """A buffer of the newest second of a stream, O(S): older samples are dropped.

    rate: samples a second.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self._waiting = collections.deque(maxlen=max(1, int(math.ceil(rate))))


def sharing(devices: int, alpha: float, seed: Seed) -> Tuple[int, ...]:
    """Ranks of the devices that share samples with all others now, ascending.

    They are a random fraction alpha of all devices; at least one unless alpha is 0. Equal seeds,
    such as (seed, step), give equal results. Raises ValueError for an alpha that is no fraction.
    """
    count = _part(alpha, devices)
    chosen = np.random.RandomState(seed).permutation(devices)[: count or int(alpha > 0.0)]
    return tuple(sorted(int(device) for device in chosen))


def shared(samples: np.ndarray, beta: float, seed: Seed) -> np.ndarray:
    """The samples that a sharing device sends: a random fraction beta of (samples,), in order.

    Raises ValueError for a beta that is no fraction.
    """
    chosen = np.random.RandomState(seed).permutation(len(samples))[: _part(beta, len(samples))]
    return samples[np.sort(chosen)]


def _part(fraction: float, whole: int) -> int:
    if not 0.0 <= fraction <= 1.0:
        raise ValueError("alpha and beta of data injection lie between 0 and 1, got %s" % fraction)
    return int(fraction * whole + 0.5)
