"""In these topologies all workers are alike: a star, all to all, and one to one."""

import abc
from typing import Sequence, Tuple

import numpy as np

from backends.strategies.option_text import whole_number
from backends.strategies.topologies.base import SERVER, MessageLoad, Topology
from backends.strategies.topologies.derangement import derangement


class Star(Topology):
    """A star around the parameter server."""

    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return tuple(range(n)) if rank == SERVER else (SERVER,)

    receives_from = sends_to

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        return (MessageLoad(n if rank == SERVER else 1, 1.0),)


class AllToAll(Topology):
    """Everyone to everyone (DLion, section 3)."""

    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return tuple(other for other in range(n) if other != rank)

    receives_from = sends_to

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        return (MessageLoad(n - 1, 1.0),)


class OneToOne(Topology):
    """Everyone sends to one and receives from one: a permutation without fixed points. Alone, one
    has nobody.
    """

    @abc.abstractmethod
    def permutation(self, n: int, step: int, segment: int) -> Sequence[int]:
        """To whom each of n >= 2 ranks sends."""

    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return (self.permutation(n, step, segment)[rank],) if n > 1 else ()

    def receives_from(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return (self.permutation(n, step, segment).index(rank),) if n > 1 else ()

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        return (MessageLoad(self.segments if n > 1 else 0, 1.0 / self.segments),)


class Ring(OneToOne):
    """Everyone to the next, chunk after chunk as ``allreduce`` tells."""

    def permutation(self, n: int, step: int, segment: int) -> Sequence[int]:
        return [(rank + 1) % n for rank in range(n)]

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        return (MessageLoad(2 * (n - 1), 1.0 / n),)


class ExponentialGraph(OneToOne):
    """Everyone to one that is 1, 2, 4, ... ranks further, in turn (SGP, Assran et al.)."""

    def permutation(self, n: int, step: int, segment: int) -> Sequence[int]:
        return [(rank + hop(n, step)) % n for rank in range(n)]


class RandomGossip(OneToOne):
    """Each segment to one that is drawn anew for every step (Crossover-SGD, Alg. 2)."""

    options = {"segments": whole_number}

    def __init__(self, segments: int = 4, seed: int = 0) -> None:
        super().__init__(seed)
        if segments < 1:
            raise ValueError("segments=%d: there must be at least 1" % segments)
        self.segments = segments

    def permutation(self, n: int, step: int, segment: int) -> Sequence[int]:
        return derangement(n, self.seed, step, segment)


class RandomPairs(Topology):
    """Even ranks each ask one odd rank, drawn anew, and get an answer (AD-PSGD, Lian et al., 2018).

    The graph is bipartite, so that nobody who waits for an answer is asked, and nobody waits for
    ever. Who is asked by several answers each of them; here what goes both ways is counted from
    the one who asks.
    """

    answers = True

    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return (self._asked(rank, n, step),) if n > 1 and rank % 2 == 0 else ()

    def receives_from(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return tuple(other for other in range(0, n, 2) if rank in self.sends_to(other, n, step))

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        """On average: an odd rank answers as many as there are even ones to each odd one."""
        asking, asked = (n + 1) // 2, n // 2
        return (
            (MessageLoad(1, 1.0 if rank % 2 == 0 or not asked else asking / asked),)
            if n > 1
            else (MessageLoad(0, 1.0),)
        )

    def _asked(self, rank: int, n: int, step: int) -> int:
        drawn = np.random.RandomState([self.seed, step, rank]).randint(n // 2)
        return 2 * int(drawn) + 1


def hop(n: int, step: int) -> int:
    """How many ranks further all n >= 2 send in a step: 1, 2, 4, ... to the greatest power of 2
    below n, and again.

    After one such cycle everyone has something of everyone: the mean itself where n is a power of
    2.
    """
    return 1 << (step % (n - 1).bit_length())
