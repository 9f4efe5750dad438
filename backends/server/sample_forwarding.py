"""A server forwards samples that workers give to one another, without looking into them."""

import collections
from typing import Callable, Deque, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from backends.protocol.frames import SharedSamples


class ForwardedSamples(NamedTuple):
    """A frame as it arrived. content: (bytes,) uint8."""

    head: SharedSamples
    content: np.ndarray


class SampleForwarding:
    """Keeps samples for each present worker until it gets its next step.

    Not thread-safe: its owner holds the run's lock.
    """

    def __init__(self) -> None:
        self._waiting: Dict[str, Deque[ForwardedSamples]] = {}

    def set_members(self, names: Tuple[str, ...]) -> None:
        """Forget workers that have left, and what waited for them."""
        self._waiting = {name: self._waiting.get(name, collections.deque()) for name in names}

    def add(self, receivers: Sequence[str], samples: ForwardedSamples, most: Callable[[str], int]) -> None:
        """Keep samples for those of the receivers that are present.

        most: samples that may wait for each; the oldest frames are dropped, for a slow worker would
            be sent more than its batches take in.
        """
        for name in receivers:
            if name in self._waiting:
                waiting = self._waiting[name]
                waiting.append(samples)
                while len(waiting) > 1 and sum(len(each.head.sizes) for each in waiting) > most(name):
                    waiting.popleft()

    def take(self, name: str) -> List[ForwardedSamples]:
        """Remove and return what waits for a worker."""
        taken = list(self._waiting.get(name, ()))
        if taken:
            self._waiting[name].clear()
        return taken
