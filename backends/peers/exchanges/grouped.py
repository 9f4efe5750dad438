"""Two levels: gradients to the leader of a group, leaders among themselves, weights back (Crossover-SGD, 3.3)."""

from typing import Any, Callable

import numpy as np

from backends.frameworks.base import OptimizerSettings
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.strategies.message import DENSE, WHOLE, Message, add, dense, put
from backends.strategies.topologies.registry import GroupedTopology


class HierarchicalExchange(Exchange):
    """``within(means)`` makes what leaders do among themselves.

    A leader's gradients are the sum of its group's, times groups / members: their mean where groups are equal, and such
    that the mean over all leaders is the mean over all members.

    Weights that were rounded would stay where a step changes them by less than the last bit. So where messages are
    rounded it is the change of the weights that goes back, and the leader takes it in as its group does; the first of
    an epoch are the weights themselves, from which on all of a group have the same.
    """

    def __init__(self, means: ExchangeParts, among: Callable[[ExchangeParts], Exchange]) -> None:
        super().__init__(means)
        assert isinstance(means.topology, GroupedTopology)
        self._among = among(means._replace(topology=means.topology.between))
        self._encode = WHOLE[means.strategy.compressor.name]
        self._alike = False

    def begin(self, names: Any) -> None:
        super().begin(names)
        topology, n = self.means.topology, len(self.names)
        self._leader = topology.leader(self.rank, n)
        self._followers = self.peers(topology.followers(self.rank, n))
        leaders = sorted({topology.leader(rank, n) for rank in range(n)})
        self._scale = len(leaders) / n
        self._alike = False
        if self._leader == self.rank:
            self._among.begin(self.peers(leaders))

    def step(self, step: int, batch: int, optimiser: OptimizerSettings, budget_s: Any = None) -> None:
        replica, links = self.means.replica, self.means.links
        if self._leader != self.rank:
            leader = self.names[self._leader]
            links.send(leader, step, self._encode(replica.gradients), kind="gradient")
            news = links.next(leader, step, "weights").message
            (put if news.kind == DENSE else add)(news, replica.weights)
            return
        for follower in self._followers:
            add(links.next(follower, step, "gradient").message, replica.gradients)
        replica.gradients *= self._scale
        before = replica.weights.copy() if self._sends_changes else replica.weights
        self._among.step(step, batch, optimiser, budget_s)
        news = self._news(before)
        for follower in self._followers:
            links.send(follower, step, news, kind="weights")
        links.flush()
        self._alike = True

    @property
    def _sends_changes(self) -> bool:
        return self._alike and bool(self._followers) and self._encode is not dense

    def _news(self, before: np.ndarray) -> Message:
        """What goes back to the group, now that its leader has new weights."""
        weights = self.means.replica.weights
        if not self._sends_changes:
            return dense(weights)
        news = self._encode(weights - before)
        weights[:] = before
        add(news, weights)
        return news

    def adopt(self) -> None:
        """So do leaders."""
        self._among.adopt()
