"""Adaptive compression sends the whole gradient where compression would lose too much (ScaDLES)."""

from typing import Any, Dict, Optional, Sequence

import numpy as np

from backends.frameworks.base import Variable
from backends.strategies.compressors.base import Compressor, Wrapper
from backends.strategies.compressors.error_feedback import ErrorFeedback
from backends.strategies.compressors.top_k import TopK
from backends.strategies.message import DENSE, Message, add, bytes_of


class Adaptive(Wrapper):
    """Compresses with ``of`` while | |g|^2 - |sent|^2 | / |g|^2 <= delta, else sends all of g.

    g is everything that the wrapped compressor had to send, its residual included. What it leaves
    behind is orthogonal to what it sends, so that |g|^2 is the sum of their squares.
    Without an ``of`` it wraps top-k. Its own array: (2,) of compressed steps and all steps.
    Raises ValueError unless 0 <= delta <= 1, and where it would wrap another Adaptive, or what
    sends other values than those it chose.
    """

    def __init__(self, variables: Sequence[Variable], of: Optional[Compressor] = None, delta: float = 0.3) -> None:
        if not 0 <= delta <= 1:
            raise ValueError("adaptive needs a delta from 0 to 1, not %s" % delta)
        if isinstance(of, Adaptive):
            raise ValueError("adaptive can be of every other kind, not of its own")
        if isinstance(of, ErrorFeedback) and not of.sends_exactly:
            raise ValueError("adaptive weighs the elements that are sent, which %s changes" % type(of).__name__)
        super().__init__(TopK(variables) if of is None else of, np.zeros(2))
        self.delta = delta

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """See Compressor. Exceeds budget_bytes where the rule asks for all values."""
        message = self.of.compress(values, budget_bytes)
        self.own[1] += 1
        if isinstance(self.of, ErrorFeedback) and _loss(self.of.accumulator, message.arrays[-1]) > self.delta:
            add(message, self.of.accumulator)
            return self.of.take_all()
        self.own[0] += 1
        return message

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """See Compressor. Uses the CNC ratio so far, or 0 before the first step."""
        ratio = self._ratio()
        everything = bytes_of(DENSE, self.size, self.size)
        return ratio * self.of.traffic_bytes(budget_bytes) + (1.0 - ratio) * everything

    def metrics(self) -> Dict[str, Any]:
        """cnc_ratio: compressed steps / all steps, 0 before the first; and the wrapped metrics."""
        return dict(self.of.metrics(), cnc_ratio=self._ratio())

    def _ratio(self) -> float:
        compressed, steps = self.own.tolist()
        return compressed / steps if steps else 0.0


def _loss(rest: np.ndarray, sent: np.ndarray) -> float:
    """The share of the squared norm that is not sent."""
    waiting = float(np.dot(rest, rest))
    return waiting / (waiting + float(np.dot(sent, sent))) if waiting else 0.0
