"""The processor time of every compressor is measured on this device."""

import time
from typing import Dict, List, Sequence, Tuple

import numpy as np

from backends.frameworks.layout import Variable, consecutive
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.registry import COMPRESSORS, CompressorSpec
from backends.strategies.message import DENSE, add, bytes_of
from profilers.records.readings import Samples
from profilers.records.step_costs import CodecCost
from profilers.thread_times import timed

#: Messages before the residual has settled; messages that are timed, and seconds for them.
WARM_UP = 2
FEWEST, MOST = 2, 10
LIMIT_S = 0.03
#: Elements of the largest vector that this is tried on. Larger ones cost in proportion.
LARGEST_SIZE = 1 << 20
#: Weights are this many times larger than gradients: Gaia then sends about the share it assumes.
SCALE = 300.0
#: Share of a gradient that a link-driven compressor may send. A smaller one costs less, a larger
#: one up to a half more.
LINK_BUDGET_SHARE = 0.25


def costs(variables: Sequence[Variable]) -> Dict[str, CodecCost]:
    """Costs of every compressor at its defaults, on Gaussian gradients of these variables."""
    small, times = _shrunk(variables)
    size = sum(variable.size for variable in small)
    values = np.random.RandomState(0).standard_normal(size).astype(np.float32)
    gradients = (values, values[::-1].copy(), np.roll(values, size // 2))
    weights = np.full(size, SCALE, np.float32)
    found = {}
    for name in COMPRESSORS:
        made = CompressorSpec(name).build(small)
        made.bind_weights(weights)
        found[name] = _coding(made, gradients, times)
    return found


def _shrunk(variables: Sequence[Variable]) -> Tuple[Tuple[Variable, ...], float]:
    """Variables of ``LARGEST_SIZE`` elements in all, in the same proportions, and how many times as
    many there are.
    """
    whole = sum(variable.size for variable in variables)
    times = max(1.0, whole / float(LARGEST_SIZE))
    shapes = [variable.shape or (1,) for variable in variables]
    shorter = [(max(1, int(shape[0] / times)),) + tuple(shape[1:]) for shape in shapes]
    return consecutive((variable.name, shape) for variable, shape in zip(variables, shorter)), times


def _coding(made: Compressor, gradients: Sequence[np.ndarray], times: float) -> CodecCost:
    budget = LINK_BUDGET_SHARE * bytes_of(DENSE, made.size, made.size) if made.by_link else None
    total = np.zeros(made.size, np.float32)
    for step in range(WARM_UP):  # the first additions, too, wait for memory
        add(made.compress(gradients[step % len(gradients)], budget), total, 0.5)
    send_s: List[float] = []
    add_s: List[float] = []
    began = time.perf_counter()
    while len(send_s) < FEWEST or (len(send_s) < MOST and time.perf_counter() - began < LIMIT_S):
        values = gradients[len(send_s) % len(gradients)]
        message, seconds = timed(made.compress, values, budget)
        send_s.append(times * seconds)
        add_s.append(times * timed(add, message, total, 0.5)[1])
    return CodecCost(Samples("s", tuple(send_s)), Samples("s", tuple(add_s)))
