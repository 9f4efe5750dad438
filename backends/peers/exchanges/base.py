"""An exchange sends a peer's gradients or weights to others and applies those it receives."""

import abc
from typing import Any, Dict, NamedTuple, Optional, Sequence

import numpy as np

from backends.frameworks.base import Arrays, OptimizerSettings, Replica
from backends.network.mailbox import Envelope, Mailbox
from backends.optimizers import lars, sgd
from backends.strategies.strategy import Strategy
from backends.strategies.topologies.base import Topology


class ExchangeParts(NamedTuple):
    """The parts that an exchange is made of."""

    replica: Replica
    mailbox: Mailbox
    topology: Topology  # of the strategy, or that of the leaders of groups
    strategy: Strategy
    local_update: "LocalUpdate"
    batch: int = 1  # samples of a member's step for which the learning rate was chosen


class LocalUpdate:
    """A peer's own update by SGD, or by LARS.

    For LARS the gradients include neither learning rate nor weight decay.
    velocity: (parameters,) float32.
    """

    def __init__(self, replica: Replica, with_lars: bool = False) -> None:
        self._replica = replica
        self.with_lars = with_lars
        self.velocity = np.zeros(replica.weights.size, np.float32)

    def apply(self, weights: np.ndarray, gradients: np.ndarray, optimizer: OptimizerSettings) -> None:
        """Make one step in place; (parameters,) float32 each. May change the gradients."""
        if self.with_lars:
            lars.scale(gradients, weights, self._replica.variables, optimizer)
        sgd.apply(weights, self.velocity, gradients, optimizer.momentum)


class Exchange(abc.ABC):
    """One way to exchange the weights and gradients in the replica's host buffers.

    names: the members of the epoch, in the order of their ranks.
    """

    def __init__(self, parts: ExchangeParts) -> None:
        self.parts = parts
        self.names: Sequence[str] = ()
        self.rank = 0

    def begin(self, names: Sequence[str]) -> None:
        """Begin a new epoch with these members; drop what is unfinished of the last one."""
        self.names = tuple(names)
        self.rank = self.names.index(self.parts.mailbox.name)

    @abc.abstractmethod
    def step(self, step: int, batch: int, optimizer: OptimizerSettings, budget_s: Optional[float] = None) -> None:
        """Update the weights with this peer's gradients and the messages of others.

        batch: samples of the gradients.
        budget_s: seconds that transfers may take, which is the time of computing a gradient; None
        for no bound. (Times of exchanges are excluded, or it would grow from step to step.)
        Raises Interrupted where a member has left. The weights are then unchanged, or include this
        peer's own update.
        """

    def adopt(self) -> None:  # noqa: B027 - most have nothing to do
        """Continue from weights in the replica that another peer has computed."""

    def handle(self, envelope: Envelope) -> None:
        """Answer a peer's request, in the thread of its connection."""
        raise ValueError("no peer sends requests in this exchange")

    def state(self) -> Dict[str, Arrays]:
        """Copies, by name, of the arrays that a checkpoint needs beside weights and velocity."""
        return {}

    def restore(self, state: Dict[str, Arrays]) -> None:  # noqa: B027 - most have no state
        """Resume from ``state``; missing arrays begin anew. Raises ValueError for other shapes."""

    def metrics(self) -> Dict[str, Any]:
        """Figures of the compressors, for reports."""
        return {}

    def peers(self, ranks: Sequence[int]) -> Sequence[str]:
        """The names of these ranks."""
        return [self.names[rank] for rank in ranks]
