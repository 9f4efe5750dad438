"""The global model is the server's copy of the weights, which workers pull and updates change."""

import time
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from backends.frameworks.base import Arrays
from backends.frameworks.layout import Layout
from backends.frameworks.optimizer import MOMENTUM, SGD, OptimizerSettings
from backends.network import framing
from backends.optimizers.base import FlatOptimizer
from backends.protocol.frames import InitialWeightsRequest, RequestedArrays
from backends.server.delta_pull import DeltaPull
from backends.strategies.message import DENSE, Message, add, dense, sound
from backends.training.checkpoint import Checkpoint


class GlobalModel:
    """Weights, what the optimizer keeps, and the state that each worker last reported.

    weights: (parameters,) float32.
    flat_optimizer: makes the updates.
    initial_state: (state,) float32, used until a worker has reported its own.
    Not thread-safe: its owner holds the run's lock.
    """

    def __init__(
        self, layout: Layout, weights: np.ndarray, flat_optimizer: FlatOptimizer, initial_state: np.ndarray
    ) -> None:
        self.layout = layout
        self.weights = weights
        self._optimizer = flat_optimizer
        self._initial_state = initial_state
        self._delta_pull = DeltaPull(layout.variables)
        self._states: Dict[str, np.ndarray] = {}
        self._updates = 0
        self._update_s = 0.0

    def accepts(self, gradient: Message) -> bool:
        """Whether a gradient is finite. Raises ValueError for a gradient of another model."""
        began = time.perf_counter()
        finite = sound(gradient)
        self._update_s += time.perf_counter() - began
        return finite

    def count_service(self, seconds: float) -> None:
        """Add what a gradient took before its update to ``service_s``."""
        self._update_s += seconds

    def update(self, gradients: Sequence[Message], shares: Sequence[float], optimizer: OptimizerSettings) -> None:
        """Make one step with accepted gradients, each times its share. May change the gradients.

        They are those of ``OptimizerSettings.in_gradients``: of SGD only the momentum is left.
        """
        began = time.perf_counter()
        if len(gradients) == 1 and gradients[0].kind == DENSE and shares[0] == 1.0:
            self._optimizer.apply(self.weights, gradients[0].arrays[0], optimizer)
        elif optimizer.kind == SGD:
            self._add_all(gradients, shares, optimizer.momentum)
        else:
            self._optimizer.apply(self.weights, self._merged(gradients, shares), optimizer)
        for change in [dense(self.weights)] if optimizer.changes_all else gradients:
            self._delta_pull.record_update(change)
        self._update_s += time.perf_counter() - began
        self._updates += len(gradients)

    def _add_all(self, gradients: Sequence[Message], shares: Sequence[float], momentum: float) -> None:
        """SGD with gradients of any encoding, which need not be merged first."""
        velocity = self._optimizer.slots[MOMENTUM]
        if momentum:
            velocity *= momentum
        for gradient, share in zip(gradients, shares):
            add(gradient, velocity if momentum else self.weights, share if momentum else -share)
        if momentum:
            self.weights -= velocity

    def _merged(self, gradients: Sequence[Message], shares: Sequence[float]) -> np.ndarray:
        merged = np.zeros_like(self.weights)
        for gradient, share in zip(gradients, shares):
            add(gradient, merged, share)
        return merged

    def pull(self, worker: str) -> Message:
        """The weights that changed since the worker's last pull; may share their memory."""
        return self._delta_pull.pull(worker, self.weights)

    def set_members(self, names: Tuple[str, ...]) -> None:
        """Remove workers that have left; one that returns pulls all weights."""
        self._delta_pull.set_members(names)

    def report_state(self, worker: str, state: np.ndarray) -> None:
        """Store what steps have changed of a worker's state: the end of (state,) float32."""
        if worker in self._states:
            self._states[worker][:] = state
        else:
            self._states[worker] = state.copy()

    def forget_state(self, worker: str) -> None:
        """Drop the outdated state of a lost worker, unless it is the only one."""
        if len(self._states) > 1:
            self._states.pop(worker, None)

    def state(self) -> np.ndarray:
        """The mean of the reported states; a new (state,) float32."""
        mean, reported = self._initial_state.copy(), list(self._states.values())
        if reported:
            mean[mean.size - reported[0].size :] = np.mean(reported, axis=0, dtype=np.float32)
        return mean

    def snapshot(self, meta: Dict[str, Any], member_states: Dict[str, Arrays]) -> Checkpoint:
        """A checkpoint with copies of all arrays, and the states of the run's members."""
        slots = {name: values.copy() for name, values in self._optimizer.slots.items()}
        return Checkpoint(self.weights.copy(), slots, self.state(), meta, self.layout, member_states)

    @property
    def service_s(self) -> Optional[float]:
        """Mean seconds of an update; None before the first."""
        return self._update_s / self._updates if self._updates else None


def from_worker(connection: framing.Connection, layout: Layout, flat_optimizer: FlatOptimizer) -> GlobalModel:
    """Receive a run's initial weights and state from a worker. Raises WireError."""
    weights, state = np.empty(layout.parameters, np.float32), np.empty(layout.state, np.float32)
    buffers = framing.as_bytes((weights, state))
    connection.send(InitialWeightsRequest())
    connection.receive(RequestedArrays, payload=lambda _: buffers)
    return GlobalModel(layout, weights, flat_optimizer, state)
