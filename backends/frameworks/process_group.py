"""A process group joins the members of a run whose framework exchanges gradients itself."""

import abc
from typing import Callable, NamedTuple, Sequence

import numpy as np

from backends.frameworks.base import Replica

#: How the message of a member begins whose exchange broke off: another member is the cause.
BROKEN = "the exchange with the other members broke off"

#: Named among ``collectives()`` where members can hold shares of a model.
SHARDING = "fully_shard"

#: Told whether this member waits for others from here on, or computes.
OnWait = Callable[[bool], None]


class GroupError(OSError):
    """The other members cannot be reached, or the exchange with them broke off."""


class GroupSettings(NamedTuple):
    """What a member needs to join.

    rank: its own, from 0, of ``size`` members.
    interface: the network interface that carries the exchange.
    address, port: where the first member's store of addresses listens.
    limit_s: seconds without an answer after which a member counts as lost.
    wait_s: longest wait for the others at one place, as while they build or evaluate.
    backend, hook, matrix_rank, start: as in ``strategies.engine.Engine``.
    is_sharded: whether the replicas are shares of one model.
    """

    rank: int
    size: int
    interface: str
    address: str
    port: int
    limit_s: float
    wait_s: float
    backend: str = "auto"
    hook: str = "none"
    matrix_rank: int = 1
    start: int = 1000
    is_sharded: bool = False


class ExchangeTime(NamedTuple):
    """Seconds of an exchange of gradients.

    exposed_s, exposed_cpu_s: since the backward pass was done, and processor seconds meanwhile.
    hidden_cpu_s: processor seconds of the exchange beside the backward pass.
    """

    exposed_s: float
    exposed_cpu_s: float
    hidden_cpu_s: float


class ProcessGroup(abc.ABC):
    """The members of a run, as one of them sees them.

    Its methods raise GroupError where the exchange breaks off. All but ``beat`` wait for all
    members, which must call the same methods in the same order.
    """

    rank: int
    size: int

    @abc.abstractmethod
    def average_gradients(self, replica: Replica, batch: int, on_wait: OnWait) -> None:
        """Set the weights to the first member's; from now on gradients are means over all samples.

        batch: samples of this member's step. A member counts in proportion to its samples.
        on_wait: called in every gradient, perhaps from another thread: with True where this member
            begins to wait for others, with False where it computes again.
        """

    @abc.abstractmethod
    def weigh(self, part: float) -> None:
        """Count this member's gradients with another factor from the next one on.

        The gradients of all members, each times its ``part``, are added up. Does not wait.
        """

    @abc.abstractmethod
    def gradient(
        self, replica: Replica, batch: object, rate: float, weight_decay: float, adds: bool, is_last: bool
    ) -> float:
        """``Replica.gradient`` together with all others; returns the loss of this batch alone.

        is_last: without it nothing is exchanged, and a later gradient adds to this one.
        """

    @abc.abstractmethod
    def exchange(self) -> ExchangeTime:
        """What the exchange of the last gradient has taken."""

    @abc.abstractmethod
    def gather(self, row: Sequence[float]) -> np.ndarray:
        """The rows of all members, (size, n) float64, from this member's, (n,)."""

    @abc.abstractmethod
    def broadcast(self, values: np.ndarray) -> None:
        """Set ``values``, (n,) float32 or float64, to those of the first member."""

    @abc.abstractmethod
    def average(self, values: np.ndarray) -> None:
        """Set ``values``, (n,) float32, to their mean over all members."""

    @abc.abstractmethod
    def beat(self, rank: int, by: int = 1) -> int:
        """Add to a member's count of heartbeats, which the first member holds; returns the count.

        Waits for the first member only. May be called from another thread.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Leave the group."""
