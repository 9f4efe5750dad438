"""Streams deliver samples to each device at a rate of its own (ScaDLES)."""

import hashlib
import math
from typing import List, Sequence

import numpy as np

#: The paper's sample sets of stream rates: kind, mean and standard deviation in samples a second.
DISTRIBUTIONS = {
    "S1": ("uniform", 38.0, 24.0),
    "S2": ("uniform", 300.0, 112.0),
    "S1'": ("normal", 64.0, 24.0),
    "S2'": ("normal", 256.0, 28.0),
}
#: Minimum samples a second of a device: the distribution S1 reaches below 0.
LEAST_RATE = 1.0


def draw_rates(distribution: str, devices: int, seed: int) -> List[float]:
    """The stream rate of each device, in samples a second; distribution: of DISTRIBUTIONS."""
    return _draw(distribution, devices, np.random.RandomState(seed))


def draw_rate(distribution: str, device: str, seed: int) -> float:
    """The stream rate of a device, in samples a second, which it has whoever else takes part."""
    digest = hashlib.sha256(("%d %s" % (seed, device)).encode()).digest()
    return _draw(distribution, 1, np.random.RandomState(np.frombuffer(digest, "<u4")))[0]


def _draw(distribution: str, devices: int, random: np.random.RandomState) -> List[float]:
    kind, mean, deviation = DISTRIBUTIONS[distribution]
    half = math.sqrt(3.0) * deviation
    if kind == "uniform":
        drawn = random.uniform(mean - half, mean + half, devices)
    else:
        drawn = random.normal(mean, deviation, devices)
    return [max(LEAST_RATE, float(rate)) for rate in drawn]


def batches(rates: Sequence[float]) -> List[int]:
    """Samples that arrive at each device in a second, at least 1."""
    return [max(1, int(rate + 0.5)) for rate in rates]
