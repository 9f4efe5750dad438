"""Partial gradient exchange sends one block of the gradient in turn (Ako, 2016)."""

from typing import Optional, Sequence

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.compressors.error_feedback import ErrorFeedback
from backends.strategies.message import DENSE, SPANS, Message, bytes_of


class Ako(ErrorFeedback):
    """Cuts the vector into blocks of one size and sends one a step, in turn; the others accumulate.

    With a byte budget there are as few blocks as make each of them fit (DLion, section 5.1.4);
    without one there are ``blocks``. Raises ValueError unless blocks >= 1.
    """

    counters = ("at",)
    by_link = True

    def __init__(self, variables: Sequence[Variable], blocks: int = 4) -> None:
        if blocks < 1:
            raise ValueError("ako needs 1 block or more, not %s" % blocks)
        super().__init__(variables)
        self.blocks = blocks
        self.at = 0

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """See Compressor. Exceeds budget_bytes only where a single element does."""
        self.accumulate(values)
        start, blocks = self.at, self._blocks(budget_bytes)
        after = start * blocks // self.size + 1
        end = _divided(after * self.size, blocks)
        self.at = end % self.size
        return self.take_spans([(start, end)])

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """The mean over all blocks; exact except for the digits of their lengths in the head."""
        blocks = self._blocks(budget_bytes)
        if blocks == 1:
            return bytes_of(DENSE, self.size, self.size)
        length = _divided(self.size, blocks)
        return bytes_of(SPANS, self.size, 1, length) - 4 * length + 4.0 * self.size / blocks

    def _blocks(self, budget_bytes: Optional[float]) -> int:
        if budget_bytes is None:
            return min(self.blocks, self.size)
        around = bytes_of(SPANS, self.size, 1, self.size) - 4 * self.size
        elements = int(min(max((budget_bytes - around) / 4.0, 1.0), self.size))
        return _divided(self.size, elements)


def _divided(amount: int, by: int) -> int:
    """The quotient, rounded up."""
    return -(-amount // by)
