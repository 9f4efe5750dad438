"""An exchange sends a peer's gradients or weights to others and applies those it receives."""

import abc
from typing import Any, Dict, NamedTuple, Optional, Sequence

from backends.frameworks.base import Arrays, Replica
from backends.frameworks.optimizer import OptimizerSettings
from backends.network.mailbox import Envelope, Mailbox
from backends.optimizers.base import FlatOptimizer
from backends.strategies.strategy import Strategy
from backends.strategies.topologies.base import Topology


class ExchangeParts(NamedTuple):
    """The parts that an exchange is made of."""

    replica: Replica
    mailbox: Mailbox
    topology: Topology  # of the strategy, or that of the leaders of groups
    strategy: Strategy
    local_update: FlatOptimizer
    batch: int = 1  # samples of a member's step for which the learning rate was chosen


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
