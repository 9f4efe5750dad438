"""The server's copy of the model: what updates change, what evaluations and checkpoints see."""

import time
from typing import Any, Dict, Sequence

import numpy as np

from backends.frameworks.base import Arrays, OptimizerSettings
from backends.network import framing
from backends.optimizers import lars, sgd
from backends.server.delta_pull import DeltaPull
from backends.strategies.message import DENSE, Message, add, dense, sound
from backends.training.checkpoint import Checkpoint
from backends.training.layout import Layout


class GlobalModel:
    """Weights, momentum, and the state that each worker last reported. Not thread-safe: the server holds its lock.

    weights, momentum: (parameters,) float32; ``initial`` (state,) float32 stands in until a worker has reported.
    """

    def __init__(self, layout: Layout, weights: np.ndarray, momentum: np.ndarray, initial: np.ndarray) -> None:
        self.layout = layout
        self.weights = weights
        self._momentum = momentum
        self._initial = initial
        self._changed = DeltaPull(layout.variables)
        self._reported: Dict[str, np.ndarray] = {}
        self._updates = 0
        self._update_s = 0.0

    def accepts(self, gradient: Message) -> bool:
        """Whether a gradient is finite. Raises ValueError for one that is of another model."""
        began = time.perf_counter()
        finite = sound(gradient)
        self._update_s += time.perf_counter() - began
        return finite

    def update(
        self,
        gradients: Sequence[Message],
        shares: Sequence[float],
        optimiser: OptimizerSettings,
        with_lars: bool = False,
    ) -> None:
        """One step with gradients that were accepted, each times its share.

        They are scaled already (see base.Optimiser), and of the optimiser only the momentum counts; LARS scales their
        sum.
        """
        began = time.perf_counter()
        if with_lars:
            self._apply_lars(gradients, shares, optimiser)
        else:
            self._apply(gradients, shares, optimiser.momentum)
        everywhere = optimiser.momentum or with_lars and optimiser.weight_decay
        for change in [dense(self._momentum)] if everywhere else gradients:
            self._changed.note(change)
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

    def _apply_lars(self, gradients: Sequence[Message], shares: Sequence[float], optimiser: OptimizerSettings) -> None:
        merged = np.zeros_like(self.weights)
        for gradient, share in zip(gradients, shares):
            add(gradient, merged, share)
        lars.apply(self.weights, self._momentum, merged, self.layout.variables, optimiser)

    def welcome(self, worker: str) -> None:
        """A worker comes with weights of its own: what it pulls next is all."""
        self._changed.forget(worker)

    def pull(self, worker: str) -> Message:
        """What of the weights has changed since the worker's last pull; may share their memory."""
        return self._changed.pull(worker, self.weights)

    def report(self, worker: str, state: np.ndarray) -> None:
        """Note a worker's state; (state,) float32."""
        if worker in self._reported:
            self._reported[worker][:] = state
        else:
            self._reported[worker] = state.copy()

    def forget(self, worker: str) -> None:
        """A lost worker's state ages: leave it out as soon as there is another."""
        if len(self._reported) > 1:
            self._reported.pop(worker, None)

    def state(self) -> np.ndarray:
        """The mean of the states reported; a new (state,) float32."""
        reported = list(self._reported.values()) or [self._initial]
        return np.mean(reported, axis=0, dtype=np.float32)

    def snapshot(self, meta: Dict[str, Any], kept: Dict[str, Arrays]) -> Checkpoint:
        """A copy of everything, beside what workers keep."""
        return Checkpoint(self.weights.copy(), self._momentum.copy(), self.state(), meta, dict(kept))

    @property
    def service_s(self) -> Any:
        """Mean seconds of an update; None before the first."""
        return self._update_s / self._updates if self._updates else None


def from_worker(connection: framing.Connection, layout: Layout) -> GlobalModel:
    """Ask a worker for the initial weights and state of a run. Raises WireError where they do not come."""
    weights, state = np.empty(layout.parameters, np.float32), np.empty(layout.state, np.float32)
    buffers = framing.as_bytes((weights, state))
    connection.send({"initial": True})
    connection.receive(lambda _: buffers)
    return GlobalModel(layout, weights, np.zeros_like(weights), state)
