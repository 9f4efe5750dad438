"""Hierarchical exchange sends gradients to leaders of groups, who exchange and return weights.

Source: Crossover-SGD, Yeo et al., section 3.3.
"""

from typing import Callable, Optional, Sequence

import numpy as np

from backends.frameworks.optimizer import OptimizerSettings
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.strategies.message import DENSE, WHOLE, Message, add, dense, put
from backends.strategies.topologies.registry import GroupedTopology


class HierarchicalExchange(Exchange):
    """Followers send gradients to their leader; leaders use an exchange of their own.

    make_exchange: builds the exchange among leaders.
    A leader's gradient is the sum of its group's, times groups / members. The mean over leaders is
    then the mean over all members, whatever the sizes of groups.

    If weights are rounded, a step smaller than their last bit would be lost. So with rounding the
    change of the weights is sent back, and the leader applies the rounded change as its group does.
    The first message of an epoch holds the weights themselves, which are then equal in the group.
    """

    def __init__(self, parts: ExchangeParts, make_exchange: Callable[[ExchangeParts], Exchange]) -> None:
        super().__init__(parts)
        assert isinstance(parts.topology, GroupedTopology)
        self._topology = parts.topology
        self._among_leaders = make_exchange(parts._replace(topology=parts.topology.between))
        self._encode = WHOLE[parts.strategy.compressor.name]
        self._group_has_weights = False

    def begin(self, names: Sequence[str]) -> None:
        super().begin(names)
        n = len(self.names)
        self._leader = self._topology.leader(self.rank, n)
        self._followers = self.peers(self._topology.followers(self.rank, n))
        leaders = sorted({self._topology.leader(rank, n) for rank in range(n)})
        self._scale = len(leaders) / n
        self._group_has_weights = False
        if self._leader == self.rank:
            self._among_leaders.begin(self.peers(leaders))

    def step(self, step: int, batch: int, optimizer: OptimizerSettings, budget_s: Optional[float] = None) -> None:
        if self._leader == self.rank:
            self._lead(step, batch, optimizer, budget_s)
        else:
            self._follow(step)

    def _follow(self, step: int) -> None:
        replica, mailbox = self.parts.replica, self.parts.mailbox
        leader = self.names[self._leader]
        mailbox.send(leader, step, self._encode(replica.gradients), kind="gradient")
        answer = mailbox.next(leader, step, "weights").message
        (put if answer.kind == DENSE else add)(answer, replica.weights)

    def _lead(self, step: int, batch: int, optimizer: OptimizerSettings, budget_s: Optional[float]) -> None:
        replica, mailbox = self.parts.replica, self.parts.mailbox
        for follower in self._followers:
            add(mailbox.next(follower, step, "gradient").message, replica.gradients)
        replica.gradients *= self._scale
        before = replica.weights.copy() if self._sends_changes else replica.weights
        self._among_leaders.step(step, batch, optimizer, budget_s)
        answer = self._answer(before)
        for follower in self._followers:
            mailbox.send(follower, step, answer, kind="weights")
        mailbox.flush()
        self._group_has_weights = True

    @property
    def _sends_changes(self) -> bool:
        return self._group_has_weights and bool(self._followers) and self._encode is not dense

    def _answer(self, before: np.ndarray) -> Message:
        """The message to followers after the leader's update.

        before: weights before the update.
        """
        weights = self.parts.replica.weights
        if not self._sends_changes:
            return dense(weights)
        change = self._encode(weights - before)
        weights[:] = before
        add(change, weights)
        return change

    def adopt(self) -> None:
        self._among_leaders.adopt()
