"""Error feedback keeps what was not sent and adds it to the next gradient."""

from typing import Iterator, Sequence, Tuple

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.magnitude import BLOCK
from backends.strategies.message import Message, dense, spans, sparse


class ErrorFeedback(Compressor):
    """A compressor with a residual: the values not sent yet (Lee et al., Eq. 1).

    accumulator: (size,) float32; the residual, and within ``compress`` the new values too.
    counters: names of attributes, int or float, that a checkpoint must hold as well.
    """

    counters: Tuple[str, ...] = ()
    #: Whether a message has the very elements of the accumulator, the others being what is left.
    sends_exactly = True

    def __init__(self, variables: Sequence[Variable]) -> None:
        super().__init__(variables)
        self.accumulator = np.zeros(self.size, np.float32)

    def accumulate(self, values: np.ndarray) -> np.ndarray:
        self.accumulator += values
        return self.accumulator

    def accumulate_blocks(self, values: np.ndarray) -> Iterator[Tuple[int, np.ndarray]]:
        """Accumulate block by block; yield each block's start, and the block while cached."""
        for start in range(0, self.size, BLOCK):
            part = self.accumulator[start : start + BLOCK]
            part += values[start : start + BLOCK]
            yield start, part

    def take(self, indices: np.ndarray) -> Message:
        """A message of the elements at ascending indices; of all where that takes no more bytes."""
        if 2 * indices.size >= self.size:
            return self.take_all()
        message = sparse(self.accumulator, indices)
        self.accumulator[indices] = 0
        return message

    def take_spans(self, parts: Sequence[Tuple[int, int]]) -> Message:
        """A message of the elements [start, end) of each part; parts ascending and apart."""
        if sum(end - start for start, end in parts) == self.size:
            return self.take_all()
        message = spans(self.accumulator, parts)
        edges, values = message.arrays
        if np.may_share_memory(values, self.accumulator):
            values = values.copy()
        for start, end in parts:
            self.accumulator[start:end] = 0
        return message._replace(arrays=(edges, values))

    def take_all(self) -> Message:
        message = dense(self.accumulator)
        self.accumulator = np.zeros(self.size, np.float32)
        return message

    def residual(self) -> np.ndarray:
        """The accumulator itself; valid until the next ``compress``."""
        return self.accumulator

    def state(self) -> Tuple[np.ndarray, ...]:
        return self.accumulator.copy(), np.array([getattr(self, name) for name in self.counters], np.float64)

    def restore(self, state: Sequence[np.ndarray]) -> None:
        expected = [(self.size,), (len(self.counters),)]
        shapes = [array.shape for array in state]
        if shapes != expected:
            raise ValueError("%s has arrays of %s, not of %s" % (type(self).__name__, expected, shapes))
        self.accumulator[:] = state[0]
        for name, value in zip(self.counters, state[1]):
            setattr(self, name, type(getattr(self, name))(value))
