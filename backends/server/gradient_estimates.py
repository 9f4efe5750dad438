"""Estimates of the workers' gradients are kept where a message is only the change of one (EF21)."""

from typing import Dict, Tuple

import numpy as np

from backends.frameworks.base import Arrays
from backends.strategies.message import Message, add, dense


class GradientEstimates:
    """The sum of all messages of each worker. Not thread-safe: its owner holds the run's lock."""

    def __init__(self) -> None:
        self._sums: Dict[str, np.ndarray] = {}

    def begin(self, worker: str, size: int, own: Arrays) -> None:
        """A worker joins. own: what it resumes from, its compressor's sum first; else nothing."""
        self._sums[worker] = own[0].copy() if own else np.zeros(size, np.float32)

    def set_members(self, names: Tuple[str, ...]) -> None:
        """Remove workers that have left."""
        self._sums = {name: total for name, total in self._sums.items() if name in names}

    def completed(self, worker: str, change: Message) -> Message:
        """The worker's whole gradient, in memory of its own, after this change of it."""
        add(change, self._sums[worker])
        return dense(self._sums[worker].copy())
