"""To whom a worker sends and from whom it receives: the interface, and every kind by name.

Workers are ranks 0..n-1 among the members of a run at that moment. One that leaves or joins changes n and ranks; every
method is told both anew, so that there is no graph to mend.
"""

import abc
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from backends.strategies import exponential, groups
from backends.strategies.derangement import derangement

#: Stands for the parameter server, which is no worker, among ranks.
SERVER = -1


class Traffic(NamedTuple):
    """Messages that one sends in a step, and receives as many, each of about this share of the vector."""

    messages: int
    share: float


class Topology(abc.ABC):
    """A directed graph over n ranks, which may change from step to step and differ between segments of the vector.

    Where workers form groups these are the edges between the groups' leaders; see ``leader``.
    """

    #: Keys of ``NAME:key=value``, which are keyword arguments of the class, and what reads their values.
    options = {}  # type: Mapping[str, Callable[[str], Any]]
    #: Parts of the vector that go different ways in a step.
    segments = 1

    def __init__(self, seed=0):
        # type: (int) -> None
        self.seed = seed

    @abc.abstractmethod
    def sends_to(self, rank, n, step, segment=0):
        # type: (int, int, int, int) -> Tuple[int, ...]
        """Ranks to which ``rank`` of n sends this segment in this step; never itself."""

    @abc.abstractmethod
    def receives_from(self, rank, n, step, segment=0):
        # type: (int, int, int, int) -> Tuple[int, ...]
        """Ranks from which it receives: those who send to it."""

    @abc.abstractmethod
    def traffic(self, rank, n):
        # type: (int, int) -> Tuple[Traffic, ...]
        """All that ``rank`` of n, or SERVER, sends in a step."""

    def leader(self, rank, n):
        # type: (int, int) -> int
        """Whom it hands its gradients before the leaders' exchange and has weights from after it; else itself."""
        return rank

    def followers(self, rank, n):
        # type: (int, int) -> Tuple[int, ...]
        """Ranks whose leader it is, itself left out."""
        return ()


class Server(Topology):
    """A star around the parameter server."""

    def sends_to(self, rank, n, step, segment=0):
        # type: (int, int, int, int) -> Tuple[int, ...]
        return tuple(range(n)) if rank == SERVER else (SERVER,)

    receives_from = sends_to

    def traffic(self, rank, n):
        # type: (int, int) -> Tuple[Traffic, ...]
        return (Traffic(n if rank == SERVER else 1, 1.0),)


class All(Topology):
    """Everyone to everyone (DLion, section 3)."""

    def sends_to(self, rank, n, step, segment=0):
        # type: (int, int, int, int) -> Tuple[int, ...]
        return tuple(other for other in range(n) if other != rank)

    receives_from = sends_to

    def traffic(self, rank, n):
        # type: (int, int) -> Tuple[Traffic, ...]
        return (Traffic(n - 1, 1.0),)


class OneToOne(Topology):
    """Everyone sends to one and receives from one: a permutation without fixed points. Alone, one has nobody."""

    @abc.abstractmethod
    def permutation(self, n, step, segment):
        # type: (int, int, int) -> Sequence[int]
        """To whom each of n >= 2 ranks sends."""

    def sends_to(self, rank, n, step, segment=0):
        # type: (int, int, int, int) -> Tuple[int, ...]
        return (self.permutation(n, step, segment)[rank],) if n > 1 else ()

    def receives_from(self, rank, n, step, segment=0):
        # type: (int, int, int, int) -> Tuple[int, ...]
        return (self.permutation(n, step, segment).index(rank),) if n > 1 else ()

    def traffic(self, rank, n):
        # type: (int, int) -> Tuple[Traffic, ...]
        return (Traffic(self.segments if n > 1 else 0, 1.0 / self.segments),)


class Ring(OneToOne):
    """Everyone to the next, chunk after chunk as ``allreduce`` tells."""

    def permutation(self, n, step, segment):
        # type: (int, int, int) -> Sequence[int]
        return [(rank + 1) % n for rank in range(n)]

    def traffic(self, rank, n):
        # type: (int, int) -> Tuple[Traffic, ...]
        return (Traffic(2 * (n - 1), 1.0 / n),)


class Exponential(OneToOne):
    """Everyone to one that is 1, 2, 4, ... ranks further, in turn (SGP, Assran et al.)."""

    def permutation(self, n, step, segment):
        # type: (int, int, int) -> Sequence[int]
        return [(rank + exponential.hop(n, step)) % n for rank in range(n)]


class Random(OneToOne):
    """Each segment to one that is drawn anew for every step (Crossover-SGD, Alg. 2)."""

    options = {"segments": int}

    def __init__(self, segments=4, seed=0):
        # type: (int, int) -> None
        super().__init__(seed)
        if segments < 1:
            raise ValueError("segments=%d: there must be at least 1" % segments)
        self.segments = segments

    def permutation(self, n, step, segment):
        # type: (int, int, int) -> Sequence[int]
        return derangement(n, self.seed, step, segment)


class Groups(Topology):
    """Gradients to the leader of a group, a topology between the leaders, weights back (Crossover-SGD, 3.3)."""

    options = {"count": int, "between": str}

    def __init__(self, count=2, between="random", seed=0):
        # type: (int, str, int) -> None
        super().__init__(seed)
        if count < 1:
            raise ValueError("count=%d: there must be at least 1 group" % count)
        self.count = count
        self.between = parse(between, seed)
        if isinstance(self.between, Groups):
            raise ValueError("between=%s: there are no groups of groups" % between)
        self.segments = self.between.segments

    def sends_to(self, rank, n, step, segment=0):
        # type: (int, int, int, int) -> Tuple[int, ...]
        return self._among_leaders(self.between.sends_to, rank, n, step, segment)

    def receives_from(self, rank, n, step, segment=0):
        # type: (int, int, int, int) -> Tuple[int, ...]
        return self._among_leaders(self.between.receives_from, rank, n, step, segment)

    def traffic(self, rank, n):
        # type: (int, int) -> Tuple[Traffic, ...]
        leaders = groups.leaders(n, self.count)
        place = _place(rank, leaders)
        if place is None:
            return (Traffic(1, 1.0),)
        within = () if rank == SERVER else (Traffic(len(self.followers(rank, n)), 1.0),)
        return within + self.between.traffic(place, len(leaders))

    def leader(self, rank, n):
        # type: (int, int) -> int
        return groups.group_of(rank, n, self.count)[0]

    def followers(self, rank, n):
        # type: (int, int) -> Tuple[int, ...]
        first, *others = groups.group_of(rank, n, self.count)
        return tuple(others) if rank == first else ()

    def _among_leaders(self, asked, rank, n, step, segment):
        # type: (Callable[[int, int, int, int], Tuple[int, ...]], int, int, int, int) -> Tuple[int, ...]
        leaders = groups.leaders(n, self.count)
        place = _place(rank, leaders)
        peers = () if place is None else asked(place, len(leaders), step, segment)
        return tuple(peer if peer == SERVER else leaders[peer] for peer in peers)


def _place(rank, leaders):
    # type: (int, Sequence[int]) -> Optional[int]
    if rank == SERVER:
        return SERVER
    return leaders.index(rank) if rank in leaders else None


TOPOLOGIES = {
    "server": Server,
    "all": All,
    "ring": Ring,
    "exponential": Exponential,
    "random": Random,
    "groups": Groups,
}  # type: Dict[str, Any]


def parse(text, seed=0):
    # type: (str, int) -> Topology
    """``NAME:key=value,...``, such as random:segments=4 or groups:count=2,between=random:segments=4.

    seed: what chance comes from, the same for all members of a run. Raises ValueError naming what does not fit.
    """
    name, values = named("topology", text, {known: kind.options for known, kind in TOPOLOGIES.items()})
    kind = TOPOLOGIES[name](seed=seed, **values)  # type: Topology
    return kind


def named(what, text, options):
    # type: (str, str, Mapping[str, Mapping[str, Callable[[str], Any]]]) -> Tuple[str, Dict[str, Any]]
    """The name and the values of ``NAME:key=value,...``; options: by name its keys and what reads their values.

    Raises ValueError for a name, a key or a value that does not fit, with those that do.
    """
    name, _, rest = text.partition(":")
    if name not in options:
        raise ValueError("unknown %s %r; known: %s" % (what, name, ", ".join(sorted(options))))
    values = {}  # type: Dict[str, Any]
    for term in rest.split(",") if rest else ():
        key, _, value = term.partition("=")
        if key not in options[name] or key in values:
            keys = ", ".join(sorted(options[name])) or "none"
            raise ValueError("%s %r: %r has no known key, or one given twice; keys: %s" % (what, text, term, keys))
        try:
            values[key] = options[name][key](value)
        except ValueError as error:
            raise ValueError("%s %r: %s: %s" % (what, text, key, error)) from error
    return name, values
