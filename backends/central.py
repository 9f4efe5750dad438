"""The server's copy of the model: what updates change, what evaluations and checkpoints see."""

import time
from typing import Any, Dict

import numpy as np

from backends import optimise, wire
from backends.checkpoint import Checkpoint
from backends.layout import Layout


class Central:
    """Weights, momentum, and the state that each worker last reported. Not thread-safe: the server holds its lock.

    weights, momentum: (parameters,) float32; ``initial`` (state,) float32 stands in until a worker has reported.
    """

    def __init__(self, layout, weights, momentum, initial):
        # type: (Layout, np.ndarray, np.ndarray, np.ndarray) -> None
        self.layout = layout
        self.weights = weights
        self._momentum = momentum
        self._initial = initial
        self._reported = {}  # type: Dict[str, np.ndarray]
        self._updates = 0
        self._update_s = 0.0

    def update(self, gradients, momentum):
        # type: (np.ndarray, float) -> bool
        """One step of SGD; gradients: (parameters,) float32, scaled (see base.Optimiser).

        False, and nothing changes, where they are not all finite.
        """
        began = time.perf_counter()
        if not optimise.finite(gradients):
            return False
        optimise.apply(self.weights, self._momentum, gradients, momentum)
        self._update_s += time.perf_counter() - began
        self._updates += 1
        return True

    def report(self, worker, state):
        # type: (str, np.ndarray) -> None
        """Note a worker's state; (state,) float32."""
        if worker in self._reported:
            self._reported[worker][:] = state
        else:
            self._reported[worker] = state.copy()

    def forget(self, worker):
        # type: (str) -> None
        """A lost worker's state ages: leave it out as soon as there is another."""
        if len(self._reported) > 1:
            self._reported.pop(worker, None)

    def state(self):
        # type: () -> np.ndarray
        """The mean of the states reported; a new (state,) float32."""
        reported = list(self._reported.values()) or [self._initial]
        return np.mean(reported, axis=0, dtype=np.float32)

    def snapshot(self, meta):
        # type: (Dict[str, Any]) -> Checkpoint
        """A copy of everything."""
        return Checkpoint(self.weights.copy(), self._momentum.copy(), self.state(), meta)

    @property
    def service_s(self):
        # type: () -> Any
        """Mean seconds of an update; None before the first."""
        return self._update_s / self._updates if self._updates else None


def from_worker(connection, layout):
    # type: (wire.Connection, Layout) -> Central
    """Ask a worker for the initial weights and state of a run. Raises WireError where they do not come."""
    weights, state = np.empty(layout.parameters, np.float32), np.empty(layout.state, np.float32)
    buffers = wire.as_bytes((weights, state))
    connection.send({"initial": True})
    connection.receive(lambda _: buffers)
    return Central(layout, weights, np.zeros_like(weights), state)
