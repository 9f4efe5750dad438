"""Sends a worker only the layers that changed since its last pull (Lee et al.)."""

from typing import Any, Dict, Sequence

import numpy as np

from backends.frameworks.base import Variable
from backends.strategies.compressors.layer_drop import _parts
from backends.strategies.message import DENSE, HALF, SPANS, Message, dense, spans


class DeltaPull:
    """The server's side, section 4.2: which layers have changed since each worker's last pull."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        self._starts = np.array([v.start for v in variables])
        self._updates = 0
        self._changed = np.zeros(len(self.variables), np.int64)  # the update in which each layer last did
        self._pulled: Dict[str, int] = {}

    def note(self, message: Message) -> None:
        """What was added to the weights. With a server's momentum that is its whole velocity, not a gradient."""
        self._updates += 1
        for layers in self._touched(message):
            self._changed[layers] = self._updates

    def pull(self, worker: str, weights: np.ndarray) -> Message:
        """What of (size,) float32 a worker is to ``put`` over its own; all of it the first time.

        May share the memory of ``weights``: send it before they change.
        """
        news = self._changed > self._pulled.get(worker, -1)
        self._pulled[worker] = self._updates
        chosen = [v for v, new in zip(self.variables, news) if new]
        return dense(weights) if len(chosen) == len(self.variables) else spans(weights, _parts(chosen))

    def forget(self, worker: str) -> None:
        """A worker has left: should it come back, it gets everything."""
        self._pulled.pop(worker, None)

    def _touched(self, message: Message) -> Sequence[Any]:
        """Indices or slices of layers."""
        if message.kind in (DENSE, HALF):
            return [slice(None)]
        if message.kind == SPANS:
            firsts = np.searchsorted(self._starts, message.arrays[0][:, 0], side="right") - 1
            lasts = np.searchsorted(self._starts, message.arrays[0][:, 1], side="left")
            return [slice(first, last) for first, last in zip(firsts, lasts)]
        return [np.searchsorted(self._starts, message.arrays[0], side="right") - 1]
