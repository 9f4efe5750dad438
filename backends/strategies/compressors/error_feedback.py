"""What was not sent is not lost: it is kept, and added to what comes next (gradient accumulation, error feedback)."""

from typing import Iterator, Sequence, Tuple

import numpy as np

from backends.frameworks.base import Variable
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.magnitude import BLOCK
from backends.strategies.message import Message, dense, spans, sparse


class ErrorFeedback(Compressor):
    """A sender with an accumulator ``rest``, (size,) float32: what was given and not sent (Lee et al., Eq. 1).

    ``counters`` names the attributes, int or float, that a checkpoint must hold beside it.
    """

    counters: Tuple[str, ...] = ()

    def __init__(self, variables: Sequence[Variable]) -> None:
        super().__init__(variables)
        self.rest = np.zeros(self.size, np.float32)

    def gather(self, values: np.ndarray) -> np.ndarray:
        """rest += values; returns rest itself."""
        self.rest += values
        return self.rest

    def gathering(self, values: np.ndarray) -> Iterator[Tuple[int, np.ndarray]]:
        """The same block by block: where each begins, and its part of rest while it is in the cache."""
        for start in range(0, self.size, BLOCK):
            part = self.rest[start : start + BLOCK]
            part += values[start : start + BLOCK]
            yield start, part

    def take(self, indices: np.ndarray) -> Message:
        """Send the elements at ascending indices. From half of all on everything goes: it takes no more bytes."""
        if 2 * indices.size >= self.size:
            return self.take_all()
        message = sparse(self.rest, indices)
        self.rest[indices] = 0
        return message

    def take_spans(self, parts: Sequence[Tuple[int, int]]) -> Message:
        """Send the elements [start, end) of each part; parts ascending and apart."""
        if sum(end - start for start, end in parts) == self.size:
            return self.take_all()
        message = spans(self.rest, parts)
        edges, values = message.arrays
        if np.may_share_memory(values, self.rest):
            values = values.copy()
        for start, end in parts:
            self.rest[start:end] = 0
        return message._replace(arrays=(edges, values))

    def take_all(self) -> Message:
        """Send all there is, uncopied."""
        message = dense(self.rest)
        self.rest = np.zeros(self.size, np.float32)
        return message

    def kept(self) -> np.ndarray:
        """The accumulator itself, to be looked at until the next ``send``."""
        return self.rest

    def state(self) -> Tuple[np.ndarray, ...]:
        """Copies: (size,) float32 of what is kept, and (counters,) float64."""
        return self.rest.copy(), np.array([getattr(self, name) for name in self.counters], np.float64)

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Go on from ``state``'s arrays, which are copied. Raises ValueError where they are of another shape."""
        wanted = [(self.size,), (len(self.counters),)]
        shapes = [array.shape for array in state]
        if shapes != wanted:
            raise ValueError("%s has arrays of %s, not of %s" % (type(self).__name__, wanted, shapes))
        self.rest[:] = state[0]
        for name, value in zip(self.counters, state[1]):
            setattr(self, name, type(getattr(self, name))(value))
