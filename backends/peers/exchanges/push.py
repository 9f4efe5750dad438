"""Stochastic gradient push sends half of a peer's mass to one other peer in each step.

Source: SGP, Assran et al., 2019, Alg. 1.
"""

from typing import Optional, Sequence

from backends.frameworks.optimizer import OptimizerSettings
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.strategies.aggregation_rules import PushSum
from backends.strategies.message import add, dense


class PushSumExchange(Exchange):
    """Applies gradients of z, the replica's weights, to x. Epochs begin with x = z, weight 1."""

    def __init__(self, parts: ExchangeParts) -> None:
        super().__init__(parts)
        self._mass = PushSum(parts.replica.weights)

    def begin(self, names: Sequence[str]) -> None:
        super().begin(names)
        self.adopt()

    def adopt(self) -> None:
        self._mass = PushSum(self.parts.replica.weights)

    def step(self, step: int, batch: int, optimizer: OptimizerSettings, budget_s: Optional[float] = None) -> None:
        parts, n = self.parts, len(self.names)
        parts.local_update.apply(self._mass.x, parts.replica.gradients, optimizer)
        waits = parts.strategy.sync.waits_for(n) > 1
        self._push(step, waits)
        sources = parts.topology.receives_from(self.rank, n, step)
        received = parts.mailbox.take(
            lambda envelope: not waits or envelope.head.step <= step, len(sources) if waits else 0
        )
        if waits:
            parts.mailbox.flush()  # x must not change while it is sent
        for envelope in received:
            add(envelope.message, self._mass.x)
            self._mass.weight += envelope.head.weight
        self._mass.debias(parts.replica.weights)

    def _push(self, step: int, waits: bool) -> None:
        """Send shares of x; a peer that does not wait for the transfer sends copies."""
        peers = self.peers(self.parts.topology.sends_to(self.rank, len(self.names), step))
        if not peers:
            return
        share, weight = self._mass.share(len(peers))
        for peer in peers:
            self.parts.mailbox.send(peer, step, dense(share if waits else share.copy()), weight=weight)
