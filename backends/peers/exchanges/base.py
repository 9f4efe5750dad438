"""An exchange says how a peer exchanges what it learns in a step; ``registry`` has every kind."""

import abc
from typing import Any, Dict, NamedTuple, Optional, Sequence

import numpy as np

from backends.frameworks.base import Arrays, OptimizerSettings, Replica
from backends.network.mailbox import Envelope, Mailbox
from backends.optimizers import lars, sgd
from backends.strategies.strategy import Strategy
from backends.strategies.topologies.base import Topology


class ExchangeParts(NamedTuple):
    """What an exchange works with.

    topology: of the strategy, or that of leaders of groups among themselves.
    batch: samples of a member's step for which the learning rate was chosen.
    """

    replica: Replica
    mailbox: Mailbox
    topology: Topology
    strategy: Strategy
    local_update: "LocalUpdate"
    batch: int = 1


class LocalUpdate:
    """A peer's own update: SGD, or LARS, for which gradients include neither rate nor decay.

    velocity: (parameters,) float32.
    """

    def __init__(self, replica: Replica, with_lars: bool = False) -> None:
        self._replica = replica
        self.with_lars = with_lars
        self.velocity = np.zeros(replica.weights.size, np.float32)

    def apply(self, weights: np.ndarray, gradients: np.ndarray, optimiser: OptimizerSettings) -> None:
        """Make one step in place; (parameters,) float32 each. The gradients may be changed, too."""
        if self.with_lars:
            lars.scale(gradients, weights, self._replica.variables, optimiser)
        sgd.apply(weights, self.velocity, gradients, optimiser.momentum)


class Exchange(abc.ABC):
    """One way to exchange the weights and gradients in the replica's host buffers.

    names: the members of the epoch, in the order of their ranks.
    """

    def __init__(self, parts: ExchangeParts) -> None:
        self.parts = parts
        self.names: Sequence[str] = ()
        self.rank = 0

    def begin(self, names: Sequence[str]) -> None:
        """Begin a new epoch with these members; give up what is unfinished of the last."""
        self.names = tuple(names)
        self.rank = self.names.index(self.parts.mailbox.name)

    @abc.abstractmethod
    def step(self, step: int, batch: int, optimiser: OptimizerSettings, budget_s: Optional[float] = None) -> None:
        """Update the weights with this peer's gradients and what others send.

        batch: samples that the gradients are of.
        budget_s: time that transfers may take, which is what computing a gradient takes; None for
        no bound. (Time of exchanges left in, it would grow from step to step.)
        Raises Interrupted where a member has left. Then the weights are as they were, or include
        this peer's own update.
        """

    def adopt(self) -> None:  # noqa: B027 - most have nothing to do
        """Go on from weights in the replica that another has computed."""

    def handle(self, envelope: Envelope) -> None:
        """Answer a peer's request, in the thread of its connection."""
        raise ValueError("no peer sends requests in this exchange")

    def state(self) -> Dict[str, Arrays]:
        """Copies of all that a checkpoint needs beside weights and velocity, by name."""
        return {}

    def restore(self, state: Dict[str, Arrays]) -> None:  # noqa: B027 - most have no state
        """Go on from ``state``; what it lacks begins anew. Raises ValueError for other shapes."""

    def metrics(self) -> Dict[str, Any]:
        """Figures of the compressors, for people."""
        return {}

    def peers(self, ranks: Sequence[int]) -> Sequence[str]:
        """The names of ranks."""
        return [self.names[rank] for rank in ranks]
