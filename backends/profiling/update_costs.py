"""An update of the weights is timed by optimizer, on a device alone and at a parameter server."""

import sys
import time
from typing import Callable, Dict, List

import numpy as np

from backends.frameworks.base import Replica
from backends.frameworks.layout import Layout, Variable
from backends.frameworks.optimizer import ADAM, LARS, OWN, SGD, OptimizerSettings
from backends.optimizers import registry
from backends.optimizers.base import JobOptimizer
from backends.server.global_model import GlobalModel
from backends.strategies import message
from backends.training.compute_clock import clock_of
from profilers.records.readings import Samples
from profilers.records.step_costs import UpdateCost
from profilers.thread_times import timed

MOMENTUM = 0.9
#: Small enough that nothing overflows on noise.
RATE = 1e-6
MOST_REPEATS = 20
LIMIT_S = 0.1
#: Of an optimizer that few runs use.
OTHERS_LIMIT_S = 0.03


def service_s(parameters: int, kind: str = SGD, limit_s: float = LIMIT_S, most: int = sys.maxsize) -> Samples:
    """Seconds that a parameter server on this device's processor takes for one update.

    most: parameters that are updated; the seconds of more are in proportion.
    """
    size = min(parameters, most)
    weights, values = (np.full(size, 1e-6, np.float32) for _ in range(2))
    variables = (Variable("all", (size, 1), 0, size),)
    gradient = message.dense(values)
    server = GlobalModel(Layout((), ()), weights, registry.build(kind, variables), np.empty(0, np.float32))
    optimizer = OptimizerSettings(RATE, MOMENTUM, kind=kind)

    def update() -> None:
        server.accepts(gradient)
        server.update([gradient], [1.0], optimizer)

    return _repeated(lambda: timed(update)[1] * parameters / size, limit_s)


def own_service_s(replica: Replica, limit_s: float = LIMIT_S) -> Samples:
    """Seconds that a peer takes for one update by the optimizer of its job, copies included."""
    optimizer, gradients = JobOptimizer(replica), replica.gradients.copy()
    return _timed(lambda: optimizer.apply(replica.weights, gradients, OptimizerSettings(kind=OWN)), limit_s)


def update_s(replica: Replica, kind: str) -> Samples:
    """Seconds that a device alone takes for one update with the gradients at hand."""
    optimizer = OptimizerSettings(RATE, MOMENTUM, kind=kind)
    on_host = registry.build(kind, replica.variables) if kind == LARS else None

    def update() -> None:
        with clock_of(replica):
            if on_host is None:
                replica.update(optimizer)
            else:
                replica.fetch()
                on_host.apply(replica.weights, replica.gradients, optimizer)
                replica.load()

    return _timed(update, OTHERS_LIMIT_S)


def clip_s(replica: Replica) -> Samples:
    """Seconds to take the norm of the gradients at hand, and to scale them."""

    def clip() -> None:
        with clock_of(replica):
            replica.gradient_norm()
            replica.rescale(1.0, 0.0)

    return _timed(clip, OTHERS_LIMIT_S)


def of_others(replica: Replica, known: str = SGD) -> Dict[str, UpdateCost]:
    """Costs of other optimizers than the known one, by name. A gradient must be at hand."""
    parameters = int(replica.weights.size)
    return {
        kind: UpdateCost(update_s(replica, kind), service_s(parameters, kind, OTHERS_LIMIT_S))
        for kind in (SGD, ADAM, LARS)
        if kind != known
    }


def _timed(work: Callable[[], None], limit_s: float) -> Samples:
    def seconds() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return _repeated(seconds, limit_s)


def _repeated(seconds: Callable[[], float], limit_s: float) -> Samples:
    times: List[float] = []
    began = time.perf_counter()
    while len(times) < 3 or (len(times) < MOST_REPEATS and time.perf_counter() - began < limit_s):
        times.append(seconds())
    return Samples("s", tuple(times[1:]), tuple(times[:1]))
