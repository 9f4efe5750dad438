"""How a member of a run exchanges what it learns with its peers: the interface. ``registry`` has every kind."""

import abc
from typing import Any, Dict, NamedTuple, Sequence

import numpy as np

from backends.frameworks.base import Arrays, OptimizerSettings, Replica
from backends.network.mailbox import Mailbox
from backends.optimizers import lars, sgd
from backends.strategies.strategy import Strategy
from backends.strategies.topologies.base import Topology


class ExchangeParts(NamedTuple):
    """What an exchange works with.

    topology: of the strategy, or that of leaders of groups among themselves.
    batch: samples of a member's step for which the learning rate was chosen.
    """

    replica: Replica
    links: Mailbox
    topology: Topology
    strategy: Strategy
    local: "LocalUpdate"
    batch: int = 1


class LocalUpdate:
    """A member's own update: SGD, or LARS, which takes gradients that are not scaled.

    ``velocity``: (parameters,) float32.
    """

    def __init__(self, replica: Replica, with_lars: bool = False) -> None:
        self._replica = replica
        self.with_lars = with_lars
        self.velocity = np.zeros(replica.weights.size, np.float32)

    def apply(self, weights: np.ndarray, gradients: np.ndarray, optimiser: OptimizerSettings) -> None:
        """One step, in place; (parameters,) float32 each. The gradients may be changed."""
        if self.with_lars:
            lars.scale(gradients, weights, self._replica.variables, optimiser)
        sgd.apply(weights, self.velocity, gradients, optimiser.momentum)


class Exchange(abc.ABC):
    """One way to exchange. The weights are the replica's host buffer, the gradients too.

    ``names`` are the members of an epoch in the order of their ranks.
    """

    def __init__(self, means: ExchangeParts) -> None:
        self.means = means
        self.names: Sequence[str] = ()
        self.rank = 0

    def begin(self, names: Sequence[str]) -> None:
        """A new epoch; what is unfinished of the last is given up."""
        self.names = tuple(names)
        self.rank = self.names.index(self.means.links.name)

    @abc.abstractmethod
    def step(self, step: int, batch: int, optimiser: OptimizerSettings, budget_s: Any = None) -> None:
        """Update the weights with the gradients at hand, and with what peers send.

        batch: samples that the gradients are of; budget_s: what computing them takes, and so a transfer may; its own
        time left out, which would give it more and more. Raises links.Interrupted where somebody has left; then the
        weights are as they were, or have this member's own update.
        """

    def adopt(self) -> None:  # noqa: B027 - most have nothing to do
        """The replica's weights are now another's."""

    def handle(self, parcel: Any) -> None:
        """Answer a peer that asks, in the thread of its connection."""
        raise ValueError("nobody asks in this exchange")

    def state(self) -> Dict[str, Arrays]:
        """Copies of all that a checkpoint must have beside weights and velocity, by name."""
        return {}

    def restore(self, state: Dict[str, Arrays]) -> None:  # noqa: B027 - most keep nothing
        """Go on from ``state``; names that are missing begin anew. Raises ValueError for another's shapes."""

    def told(self) -> Dict[str, Any]:
        """Figures for people: what senders tell (senders.Sender)."""
        return {}

    def peers(self, ranks: Sequence[int]) -> Sequence[str]:
        """Names of ranks."""
        return [self.names[rank] for rank in ranks]
