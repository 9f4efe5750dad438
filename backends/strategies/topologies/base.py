"""The topology interface names the ranks that a worker sends to and receives from.

Workers are ranks 0..n-1 among the present members of a run. A join or leave changes n and the
ranks. Every method takes both, so that no graph needs repair.
"""

import abc
from typing import Any, Callable, Mapping, NamedTuple, Tuple

#: The rank of the parameter server, which is no worker.
SERVER = -1


class MessageLoad(NamedTuple):
    """Messages sent, and as many received, in a step; each of about this share of the vector."""

    messages: int
    share: float


class Topology(abc.ABC):
    """A directed graph over n ranks.

    It may change from step to step and differ between segments of the vector.
    Where workers form groups, its edges connect the groups' leaders; see ``leader``.
    """

    #: Option keys, which are keyword arguments of the class, and their parsers.
    options: Mapping[str, Callable[[str], Any]] = {}
    #: Segments of the vector that may have different receivers in a step.
    segments = 1
    #: Whether a receiver sends as much back in the same step.
    answers = False

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    @abc.abstractmethod
    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        """Ranks to which ``rank`` of n sends this segment in this step; never itself."""

    @abc.abstractmethod
    def receives_from(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        """Ranks that send to ``rank`` in this step."""

    @abc.abstractmethod
    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        """The messages that ``rank`` of n, or SERVER, sends in a step."""

    def leader(self, rank: int, n: int) -> int:
        """The rank that sums gradients of ``rank`` and returns weights; without groups, itself."""
        return rank

    def followers(self, rank: int, n: int) -> Tuple[int, ...]:
        """Ranks that have ``rank`` as leader, itself excluded."""
        return ()
