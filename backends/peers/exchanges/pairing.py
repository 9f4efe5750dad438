"""Pairwise averaging sets the weights of two peers to their mean when one asks.

Source: AD-PSGD, Lian et al., 2018, Alg. 1.
"""

import threading
from typing import Optional

from backends.frameworks.optimizer import OptimizerSettings
from backends.network.mailbox import Envelope
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.strategies import aggregation_rules
from backends.strategies.message import dense


class PairwiseAveraging(Exchange):
    """Keeps its own weights x, apart from the replica's, at which gradients are computed.

    So x may change while a gradient is computed.
    """

    def __init__(self, parts: ExchangeParts) -> None:
        super().__init__(parts)
        self._x = parts.replica.weights.copy()
        self._lock = threading.Lock()

    def adopt(self) -> None:
        with self._lock:
            self._x[:] = self.parts.replica.weights

    def step(self, step: int, batch: int, optimizer: OptimizerSettings, budget_s: Optional[float] = None) -> None:
        parts = self.parts
        for peer in self.peers(parts.topology.sends_to(self.rank, len(self.names), step)):
            # A peer that asks is never asked, so that x does not change meanwhile.
            parts.mailbox.send(peer, step, dense(self._x), asks=True)
            answer = parts.mailbox.next(peer, step, "mean")
            self._x[:] = answer.message.arrays[0]
        with self._lock:
            parts.local_update.apply(self._x, parts.replica.gradients, optimizer)
            parts.replica.weights[:] = self._x

    def handle(self, envelope: Envelope) -> None:
        """Set x to the mean of x and the asking peer's weights, and send the mean."""
        received = envelope.message.arrays[0]
        with self._lock:
            aggregation_rules.average_pair(self._x, received)
        self.parts.mailbox.send(envelope.sender, envelope.head.step, dense(received), kind="mean")
