"""Two average their weights whenever one of them asks (AD-PSGD, Lian et al., 2018, Alg. 1)."""

import threading
from typing import Any

from backends.frameworks.base import OptimizerSettings
from backends.network.mailbox import Envelope
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.strategies import aggregation
from backends.strategies.message import dense


class PairwiseAveraging(Exchange):
    """x is apart from the replica's weights, which gradients are computed at, so that it may change meanwhile."""

    def __init__(self, means: ExchangeParts) -> None:
        super().__init__(means)
        self._x = means.replica.weights.copy()
        self._lock = threading.Lock()

    def adopt(self) -> None:
        """Begin from the replica's weights."""
        with self._lock:
            self._x[:] = self.means.replica.weights

    def step(self, step: int, batch: int, optimiser: OptimizerSettings, budget_s: Any = None) -> None:
        means = self.means
        for peer in self.peers(means.topology.sends_to(self.rank, len(self.names), step)):
            means.links.send(peer, step, dense(self._x), asks=True)  # who asks is asked by nobody: x stays
            answer = means.links.next(peer, step, "mean")
            self._x[:] = answer.message.arrays[0]
        with self._lock:
            means.local.apply(self._x, means.replica.gradients, optimiser)
            means.replica.weights[:] = self._x

    def handle(self, parcel: Envelope) -> None:
        """Take the mean of one's own and the asking peer's weights, and send it."""
        theirs = parcel.message.arrays[0]
        with self._lock:
            aggregation.average_pair(self._x, theirs)
        self.means.links.send(parcel.sender, parcel.step, dense(theirs), kind="mean")
