"""Pairwise averaging: two peers average their weights when one asks.

AD-PSGD, Lian et al., 2018, Alg. 1.
"""

import threading
from typing import Optional

from backends.frameworks.base import OptimizerSettings
from backends.network.mailbox import Envelope
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.strategies import aggregation
from backends.strategies.message import dense


class PairwiseAveraging(Exchange):
    """Keeps x apart from the replica's weights, which gradients are computed at.

    So x may change while a gradient is computed.
    """

    def __init__(self, parts: ExchangeParts) -> None:
        super().__init__(parts)
        self._x = parts.replica.weights.copy()
        self._lock = threading.Lock()

    def adopt(self) -> None:
        with self._lock:
            self._x[:] = self.parts.replica.weights

    def step(self, step: int, batch: int, optimiser: OptimizerSettings, budget_s: Optional[float] = None) -> None:
        parts = self.parts
        for peer in self.peers(parts.topology.sends_to(self.rank, len(self.names), step)):
            # Nobody asks a peer that asks, so that x does not change meanwhile.
            parts.mailbox.send(peer, step, dense(self._x), asks=True)
            answer = parts.mailbox.next(peer, step, "mean")
            self._x[:] = answer.message.arrays[0]
        with self._lock:
            parts.local_update.apply(self._x, parts.replica.gradients, optimiser)
            parts.replica.weights[:] = self._x

    def handle(self, envelope: Envelope) -> None:
        """Take the mean of one's own weights and the asking peer's, and send it."""
        theirs = envelope.message.arrays[0]
        with self._lock:
            aggregation.average_pair(self._x, theirs)
        self.parts.mailbox.send(envelope.sender, envelope.step, dense(theirs), kind="mean")
