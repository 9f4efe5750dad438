"""Stochastic gradient push: half of one's mass to one peer in each step (SGP, Assran et al., 2019, Alg. 1)."""

from typing import Any

from backends.frameworks.base import OptimizerSettings
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.strategies.message import add, dense
from backends.strategies.pushsum import PushSum


class PushSumExchange(Exchange):
    """Gradients are of z, the replica's weights, and applied to x. In a new epoch every x is its z, with weight 1."""

    def __init__(self, means: ExchangeParts) -> None:
        super().__init__(means)
        self._mass = PushSum(means.replica.weights)

    def begin(self, names: Any) -> None:
        super().begin(names)
        self.adopt()

    def adopt(self) -> None:
        """Begin from the replica's weights."""
        self._mass = PushSum(self.means.replica.weights)

    def step(self, step: int, batch: int, optimiser: OptimizerSettings, budget_s: Any = None) -> None:
        means, n = self.means, len(self.names)
        means.local.apply(self._mass.x, means.replica.gradients, optimiser)
        waits = means.strategy.sync.waits_for(n) > 1
        peers = self.peers(means.topology.sends_to(self.rank, n, step))
        if peers:
            share, weight = self._mass.share(len(peers))
            for peer in peers:
                means.links.send(peer, step, dense(share if waits else share.copy()), weight=weight)
        sources = means.topology.receives_from(self.rank, n, step)
        coming = means.links.take(lambda parcel: not waits or parcel.step <= step, len(sources) if waits else 0)
        if waits:
            means.links.flush()
        for parcel in coming:
            add(parcel.message, self._mass.x)
            self._mass.weight += float(parcel.meta["weight"])
        self._mass.debias(means.replica.weights)
