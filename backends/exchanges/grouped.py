"""Two levels: gradients to the leader of a group, leaders among themselves, weights back (Crossover-SGD, 3.3)."""

from typing import Any, Callable

from backends.base import Optimiser
from backends.exchanges.base import Exchange, Means
from backends.strategies.message import add, dense
from backends.strategies.topologies import Groups


class Grouped(Exchange):
    """``within(means)`` makes what leaders do among themselves.

    A leader's gradients are the sum of its group's, times groups / members: their mean where groups are equal, and such
    that the mean over all leaders is the mean over all members.
    """

    def __init__(self, means, among):
        # type: (Means, Callable[[Means], Exchange]) -> None
        super().__init__(means)
        assert isinstance(means.topology, Groups)
        self._among = among(means._replace(topology=means.topology.between))

    def begin(self, names):
        # type: (Any) -> None
        super().begin(names)
        topology, n = self.means.topology, len(self.names)
        self._leader = topology.leader(self.rank, n)
        self._followers = self.peers(topology.followers(self.rank, n))
        leaders = sorted({topology.leader(rank, n) for rank in range(n)})
        self._scale = len(leaders) / n
        if self._leader == self.rank:
            self._among.begin(self.peers(leaders))

    def step(self, step, batch, optimiser, budget_s=None):
        # type: (int, int, Optimiser, Any) -> None
        replica, links = self.means.replica, self.means.links
        if self._leader != self.rank:
            leader = self.names[self._leader]
            links.send(leader, step, dense(replica.gradients), kind="gradient")
            replica.weights[:] = links.next(leader, step, "weights").message.arrays[0]
            return
        for follower in self._followers:
            add(links.next(follower, step, "gradient").message, replica.gradients)
        replica.gradients *= self._scale
        self._among.step(step, batch, optimiser, budget_s)
        for follower in self._followers:
            links.send(follower, step, dense(replica.weights), kind="weights")
        links.flush()

    def adopt(self):
        # type: () -> None
        """So do leaders."""
        self._among.adopt()
