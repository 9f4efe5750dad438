"""A delta pull sends a worker the layers that changed since its last pull (Lee et al., 4.2)."""

from typing import Any, Dict, Sequence, Tuple

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.message import DENSE, HALF, LOW_RANK, QUANTIZED, SPANS, Message, dense, spans


class DeltaPull:
    """Stores the update in which each layer last changed, and each worker's last pull."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        self._starts = np.array([variable.start for variable in variables])
        self._updates = 0
        self._changed_in = np.zeros(len(self.variables), np.int64)
        self._pulled_at: Dict[str, int] = {}

    def record_update(self, change: Message) -> None:
        """Record the layers that an update changed; with momentum it is the whole velocity."""
        self._updates += 1
        for layers in self._touched(change):
            self._changed_in[layers] = self._updates

    def pull(self, worker: str, weights: np.ndarray) -> Message:
        """The layers of (size,) float32 weights that a worker lacks; all of them the first time.

        May share the memory of ``weights``: send it before they change.
        """
        stale = self._changed_in > self._pulled_at.get(worker, -1)
        self._pulled_at[worker] = self._updates
        chosen = [variable.span for variable, is_stale in zip(self.variables, stale) if is_stale]
        return dense(weights) if len(chosen) == len(self.variables) else spans(weights, chosen)

    def set_members(self, names: Tuple[str, ...]) -> None:
        """Remove workers that have left; one that returns pulls all weights."""
        for worker in set(self._pulled_at) - set(names):
            del self._pulled_at[worker]

    def _touched(self, change: Message) -> Sequence[Any]:
        """Indices or slices of the layers of which a message holds elements."""
        if change.kind in (DENSE, HALF, LOW_RANK, QUANTIZED):
            return [slice(None)]
        if change.kind == SPANS:
            edges = change.arrays[0]
            firsts = np.searchsorted(self._starts, edges[:, 0], side="right") - 1
            ends = np.searchsorted(self._starts, edges[:, 1], side="left")
            return [slice(first, end) for first, end in zip(firsts, ends)]
        return [np.searchsorted(self._starts, change.arrays[0], side="right") - 1]
