"""The global model is the server's copy of the weights, which workers pull and updates change."""

import time
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from backends.frameworks.base import Arrays, Layout, OptimizerSettings
from backends.network import framing
from backends.optimizers import lars, sgd
from backends.protocol.frames import InitialWeightsRequest, RequestedArrays
from backends.server.delta_pull import DeltaPull
from backends.strategies.message import DENSE, Message, add, dense, sound
from backends.training.checkpoint import Checkpoint


class GlobalModel:
    """Weights, momentum, and the state that each worker last reported.

    weights, momentum: (parameters,) float32.
    initial_state: (state,) float32, used until a worker has reported its own.
    Not thread-safe: its owner holds the run's lock.
    """

    def __init__(self, layout: Layout, weights: np.ndarray, momentum: np.ndarray, initial_state: np.ndarray) -> None:
        self.layout = layout
        self.weights = weights
        self._momentum = momentum
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

    def update(
        self,
        gradients: Sequence[Message],
        shares: Sequence[float],
        optimizer: OptimizerSettings,
        with_lars: bool = False,
    ) -> None:
        """Make one step with accepted gradients, each times its share.

        The gradients include rate and weight decay (base.Replica), so that only the momentum of
        ``optimizer`` is used. With LARS they include neither, and their sum is scaled.
        """
        began = time.perf_counter()
        if with_lars:
            self._apply_lars(gradients, shares, optimizer)
        else:
            self._apply(gradients, shares, optimizer.momentum)
        changes_all = optimizer.momentum or with_lars and optimizer.weight_decay
        for change in [dense(self._momentum)] if changes_all else gradients:
            self._delta_pull.record_update(change)
        self._update_s += time.perf_counter() - began
        self._updates += len(gradients)

    def _apply(self, gradients: Sequence[Message], shares: Sequence[float], momentum: float) -> None:
        if len(gradients) == 1 and gradients[0].kind == DENSE and shares[0] == 1.0:
            sgd.apply(self.weights, self._momentum, gradients[0].arrays[0], momentum)
            return
        if momentum:
            self._momentum *= momentum
        for gradient, share in zip(gradients, shares):
            add(gradient, self._momentum if momentum else self.weights, share if momentum else -share)
        if momentum:
            self.weights -= self._momentum

    def _apply_lars(self, gradients: Sequence[Message], shares: Sequence[float], optimizer: OptimizerSettings) -> None:
        merged = np.zeros_like(self.weights)
        for gradient, share in zip(gradients, shares):
            add(gradient, merged, share)
        lars.apply(self.weights, self._momentum, merged, self.layout.variables, optimizer)

    def pull(self, worker: str) -> Message:
        """The weights that changed since the worker's last pull; may share their memory."""
        return self._delta_pull.pull(worker, self.weights)

    def set_members(self, names: Tuple[str, ...]) -> None:
        """Remove workers that have left; one that returns pulls all weights."""
        self._delta_pull.set_members(names)

    def report_state(self, worker: str, state: np.ndarray) -> None:
        """Store a worker's (state,) float32."""
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
        reported = list(self._states.values()) or [self._initial_state]
        return np.asarray(np.mean(reported, axis=0, dtype=np.float32))

    def snapshot(self, meta: Dict[str, Any], member_states: Dict[str, Arrays]) -> Checkpoint:
        """A checkpoint with copies of all arrays, and the states of the run's members."""
        return Checkpoint(self.weights.copy(), self._momentum.copy(), self.state(), meta, member_states)

    @property
    def service_s(self) -> Optional[float]:
        """Mean seconds of an update; None before the first."""
        return self._update_s / self._updates if self._updates else None


def from_worker(connection: framing.Connection, layout: Layout) -> GlobalModel:
    """Receive a run's initial weights and state from a worker. Raises WireError."""
    weights, state = np.empty(layout.parameters, np.float32), np.empty(layout.state, np.float32)
    buffers = framing.as_bytes((weights, state))
    connection.send(InitialWeightsRequest())
    connection.receive(RequestedArrays, payload=lambda _: buffers)
    return GlobalModel(layout, weights, np.zeros_like(weights), state)
