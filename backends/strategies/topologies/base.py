"""A topology says to whom a worker sends and from whom it receives: this is its interface.

Workers are ranks 0..n-1 among the members of a run at that moment. One that leaves or joins
changes n and ranks; every method is told both anew, so that there is no graph to mend.
"""

import abc
from typing import Any, Callable, Mapping, NamedTuple, Tuple

#: Stands for the parameter server, which is no worker, among ranks.
SERVER = -1


class MessageLoad(NamedTuple):
    """Messages that one sends in a step, and receives as many, each of about this share of the
    vector.
    """

    messages: int
    share: float


class Topology(abc.ABC):
    """A directed graph over n ranks, which may change from step to step and differ between
    segments of the vector.

    Where workers form groups these are the edges between the groups' leaders; see ``leader``.
    """

    #: Keys of ``NAME:key=value``, which are keyword arguments of the class, and what reads their
    #: values.
    options: Mapping[str, Callable[[str], Any]] = {}
    #: Parts of the vector that go different ways in a step.
    segments = 1
    #: Whether whoever is sent to sends as much back in the same step.
    answers = False

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    @abc.abstractmethod
    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        """Ranks to which ``rank`` of n sends this segment in this step; never itself."""

    @abc.abstractmethod
    def receives_from(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        """Ranks from which it receives: those who send to it."""

    @abc.abstractmethod
    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        """All that ``rank`` of n, or SERVER, sends in a step."""

    def leader(self, rank: int, n: int) -> int:
        """Whom it hands its gradients before the leaders' exchange and has weights from after it;
        else itself.
        """
        return rank

    def followers(self, rank: int, n: int) -> Tuple[int, ...]:
        """Ranks whose leader it is, itself left out."""
        return ()
