"""Streams deliver samples to each device at a rate of its own (ScaDLES)."""

import hashlib
import math

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

#: The set of rates that batches follow where a run has no stream.
USUAL_RATES = "S1"


def draw_rate(distribution: str, device: str, seed: int) -> float:
    """The stream rate of a device, in samples a second, which it has whoever else takes part.

    distribution: of DISTRIBUTIONS.
    """
    digest = hashlib.sha256(("%d %s" % (seed, device)).encode()).digest()
    random = np.random.RandomState(np.frombuffer(digest, "<u4"))
    kind, mean, deviation = DISTRIBUTIONS[distribution]
    half = math.sqrt(3.0) * deviation
    drawn = random.uniform(mean - half, mean + half) if kind == "uniform" else random.normal(mean, deviation)
    return max(LEAST_RATE, float(drawn))


def drawn_batch(device: str, seed: int) -> int:
    """Samples that a stream with a usual rate would bring a device in a second, at least 1."""
    return max(1, int(draw_rate(USUAL_RATES, device, seed) + 0.5))
