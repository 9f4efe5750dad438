"""Graphs of workers: a star, all to all, one to one, random pairs, and random permutations."""

import abc
from typing import List, Sequence, Tuple

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.name_and_options import whole_number
from backends.strategies.topologies.base import SERVER, MessageLoad, Topology


class Star(Topology):
    """A star around the parameter server."""

    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return tuple(range(n)) if rank == SERVER else (SERVER,)

    receives_from = sends_to

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        return (MessageLoad(n if rank == SERVER else 1, 1.0),)


class AllToAll(Topology):
    """Every worker sends to every other one (DLion, section 3)."""

    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return tuple(other for other in range(n) if other != rank)

    receives_from = sends_to

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        return (MessageLoad(n - 1, 1.0),)


class OneToOne(Topology):
    """Every worker sends to one and receives from one: a permutation without fixed points."""

    @abc.abstractmethod
    def permutation(self, n: int, step: int, segment: int) -> Sequence[int]:
        """The receiver of each of n >= 2 ranks."""

    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return (self.permutation(n, step, segment)[rank],) if n > 1 else ()

    def receives_from(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return (self.permutation(n, step, segment).index(rank),) if n > 1 else ()

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        return (MessageLoad(self.segments if n > 1 else 0, 1.0 / self.segments),)


class Ring(OneToOne):
    """Every worker sends to the next, chunk after chunk as in ``allreduce``."""

    def permutation(self, n: int, step: int, segment: int) -> Sequence[int]:
        return [(rank + 1) % n for rank in range(n)]

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        return (MessageLoad(2 * (n - 1), 1.0 / n),)


class ExponentialGraph(OneToOne):
    """Every worker sends to the one 1, 2, 4, ... ranks further, in turn (SGP, Assran et al.)."""

    def permutation(self, n: int, step: int, segment: int) -> Sequence[int]:
        return [(rank + hop(n, step)) % n for rank in range(n)]


class RandomGossip(OneToOne):
    """Every worker sends each segment to a random other one (Crossover-SGD, Alg. 2)."""

    options = {"segments": whole_number}

    def __init__(self, segments: int = 4, seed: int = 0) -> None:
        super().__init__(seed)
        if segments < 1:
            raise ValueError("segments=%d: there must be at least 1" % segments)
        self.segments = segments

    def permutation(self, n: int, step: int, segment: int) -> Sequence[int]:
        return derangement(n, self.seed, step, segment)


class RandomPairs(Topology):
    """Each even rank asks a random odd rank, and gets an answer (AD-PSGD, Lian et al., 2018).

    The graph is bipartite: a worker that waits for an answer is never asked, so that there is no
    deadlock. Traffic in both directions counts for the asking rank.
    """

    answers = True

    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return (self._asked(rank, n, step),) if n > 1 and rank % 2 == 0 else ()

    def receives_from(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return tuple(other for other in range(0, n, 2) if rank in self.sends_to(other, n, step))

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        """See Topology. An odd rank answers, on average, the even ranks for each odd one."""
        if n == 1:
            return (MessageLoad(0, 1.0),)
        asking, asked = (n + 1) // 2, n // 2
        return (MessageLoad(1, 1.0 if rank % 2 == 0 else asking / asked),)

    def _asked(self, rank: int, n: int, step: int) -> int:
        drawn = np.random.RandomState([self.seed, step, rank]).randint(n // 2)
        return 2 * int(drawn) + 1


def hop(n: int, step: int) -> int:
    """The number of ranks further that all n >= 2 send in a step: 1, 2, 4, ... below n, repeatedly.

    After one such cycle every worker has received from all, directly or not.
    """
    return 1 << (step % (n - 1).bit_length())


def derangement(n: int, seed: int, step: int, segment: int = 0) -> Tuple[int, ...]:
    """The receiver of each of n ranks in a step: a random permutation without fixed points.

    Crossover-SGD's Alg. 2 draws rank by rank, and the last may have only itself left. Here whole
    permutations are drawn until one has no fixed point: e draws on average, and all derangements
    are equally likely. It is the same on every machine: RandomState is frozen (NEP 19).
    Raises ValueError for fewer than 2 ranks, and where a number is not in 0..2**32 - 1.
    """
    if n < 2:
        raise ValueError("%d ranks have no permutation without fixed points" % n)
    source = np.random.RandomState([seed, step, segment])
    places = np.arange(n)
    while True:
        drawn = source.permutation(n)
        if not np.any(drawn == places):
            return tuple(drawn.tolist())


def segments(variables: Sequence[Variable], count: int) -> List[Tuple[int, int]]:
    """Start and end, in the flat buffer, of ``count`` segments of about equal size.

    Each ends with the layer nearest to an equal division; there are no more than layers.
    """
    ends = [variable.start + variable.size for variable in variables]
    count = min(count, len(ends))
    borders, first = [0], 0
    for i in range(1, count):
        ideal_end = ends[-1] * i / count
        gaps = [abs(end - ideal_end) for end in ends[first : len(ends) - count + i]]
        first += gaps.index(min(gaps)) + 1
        borders.append(ends[first - 1])
    return list(zip(borders, borders[1:] + ends[-1:]))
