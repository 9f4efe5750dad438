"""Adaptive compression sends the whole gradient where compression would lose too much (ScaDLES)."""

import copy
from typing import Any, Dict, Optional, Sequence

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.compressors.base import Compressor, Wrapper
from backends.strategies.compressors.error_feedback import ErrorFeedback
from backends.strategies.compressors.top_k import TopK
from backends.strategies.message import DENSE, Message, add, bytes_of

ACCUMULATED, GRADIENT = "accumulated", "gradient"
RULES = (ACCUMULATED, GRADIENT)


class Adaptive(Wrapper):
    """Compresses with ``of`` while | |g|^2 - |sent|^2 | / |g|^2 <= delta, else sends all there is.

    rule: what g is. ``accumulated``: everything that the wrapped compressor has to send, its
    residual included. ``gradient``: the new values alone, and ``sent`` what it would send of them;
    so the paper prints it, which tells of no residual and smooths nothing. Under both rules, what
    is sent includes the residual. What is left behind is orthogonal to what is sent, so that |g|^2
    is the sum of their squares.

    Without an ``of`` it wraps top-k. Its own array: (3,) of compressed steps, all steps, and the
    values in all messages. Raises ValueError unless 0 <= delta <= 1, for an unknown rule, and where
    it would wrap another Adaptive, or what sends other values than those it chose.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        of: Optional[Compressor] = None,
        delta: float = 0.3,
        rule: str = ACCUMULATED,
    ) -> None:
        if not 0 <= delta <= 1:
            raise ValueError("adaptive needs a delta from 0 to 1, not %s" % delta)
        if rule not in RULES:
            raise ValueError("adaptive has no rule %r; known: %s" % (rule, ", ".join(RULES)))
        if isinstance(of, Adaptive):
            raise ValueError("adaptive can be of every other kind, not of its own")
        if isinstance(of, ErrorFeedback) and not of.sends_exactly:
            raise ValueError("adaptive weighs the elements that are sent, which %s changes" % type(of).__name__)
        super().__init__(TopK(variables) if of is None else of, np.zeros(3))
        self.delta = delta
        self._twin = copy.deepcopy(self.of) if rule == GRADIENT else None

    def bind_weights(self, weights: np.ndarray) -> None:
        super().bind_weights(weights)
        if self._twin is not None:
            self._twin.bind_weights(weights)

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """See Compressor. Exceeds budget_bytes where the rule asks for all values."""
        loss = 0.0 if self._twin is None else self._loss_of_gradient(self._twin, values, budget_bytes)
        message = self.of.compress(values, budget_bytes)
        self.own[1] += 1
        if isinstance(self.of, ErrorFeedback):
            if self._twin is None:
                loss = _loss(self.of.accumulator, message.arrays[-1])
            if loss > self.delta:
                add(message, self.of.accumulator)
                self.own[2] += self.size
                return self.of.take_all()
        self.own[0] += 1
        self.own[2] += message.arrays[-1].size
        return message

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """See Compressor. Uses the CNC ratio so far, or 0 before the first step."""
        ratio = self._ratio()
        everything = bytes_of(DENSE, self.size, self.size)
        return ratio * self.of.traffic_bytes(budget_bytes) + (1.0 - ratio) * everything

    def metrics(self) -> Dict[str, Any]:
        """cnc_ratio: compressed steps / all steps, 0 before the first; and the wrapped metrics.

        floats_sent: values in all messages, their indices not counted.
        """
        return dict(self.of.metrics(), cnc_ratio=self._ratio(), floats_sent=int(self.own[2]))

    def _ratio(self) -> float:
        compressed, steps, _ = self.own.tolist()
        return compressed / steps if steps else 0.0

    def _loss_of_gradient(self, twin: Compressor, values: np.ndarray, budget_bytes: Optional[float]) -> float:
        """What the wrapped compressor, as it is now, would lose of the new values alone."""
        if not isinstance(twin, ErrorFeedback):
            return 0.0
        twin.restore(self.of.state())
        twin.accumulator[:] = 0
        message = twin.compress(values, budget_bytes)
        return _loss(twin.accumulator, message.arrays[-1])


def _loss(rest: np.ndarray, sent: np.ndarray) -> float:
    """The share of the squared norm that is not sent."""
    waiting = float(np.dot(rest, rest))
    return waiting / (waiting + float(np.dot(sent, sent))) if waiting else 0.0
