"""The registry names every topology, and builds one from its name and options."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from backends.strategies.name_and_options import name_of, options_of, typed, whole_number
from backends.strategies.topologies.base import SERVER, MessageLoad, Topology
from backends.strategies.topologies.graphs import AllToAll, ExponentialGraph, RandomGossip, RandomPairs, Ring, Star


def _spec(text: str) -> "TopologySpec":
    """Parse a topology, for options whose value is one."""
    return TopologySpec.from_text(text)


class GroupedTopology(Topology):
    """Groups of consecutive ranks, led by their first one (hierarchical Crossover-SGD, 3.3).

    Followers send gradients to their leader, which sums them; leaders exchange over a topology of
    their own, and weights return to the followers. Ranks that share a fast link should be
    consecutive. A join or leave moves the borders.
    """

    options = {"count": whole_number, "between": _spec}

    def __init__(self, count: int = 2, between: Optional[Topology] = None, seed: int = 0) -> None:
        super().__init__(seed)
        if count < 1:
            raise ValueError("count=%d: there must be at least 1 group" % count)
        self.count = count
        self.between = RandomGossip(seed=seed) if between is None else between
        if isinstance(self.between, GroupedTopology):
            raise ValueError("between=groups: there are no groups of groups")
        self.segments = self.between.segments

    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return self._among_leaders(self.between.sends_to, rank, n, step, segment)

    def receives_from(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return self._among_leaders(self.between.receives_from, rank, n, step, segment)

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        leaders = leaders_of(n, self.count)
        place = _place(rank, leaders)
        if place is None:
            return (MessageLoad(1, 1.0),)
        within = () if rank == SERVER else (MessageLoad(len(self.followers(rank, n)), 1.0),)
        return within + self.between.traffic(place, len(leaders))

    def leader(self, rank: int, n: int) -> int:
        return group_of(rank, n, self.count)[0]

    def followers(self, rank: int, n: int) -> Tuple[int, ...]:
        first, *others = group_of(rank, n, self.count)
        return tuple(others) if rank == first else ()

    def _among_leaders(
        self, asked: Callable[[int, int, int, int], Tuple[int, ...]], rank: int, n: int, step: int, segment: int
    ) -> Tuple[int, ...]:
        leaders = leaders_of(n, self.count)
        place = _place(rank, leaders)
        peers = () if place is None else asked(place, len(leaders), step, segment)
        return tuple(peer if peer == SERVER else leaders[peer] for peer in peers)


def split(n: int, count: int) -> List[range]:
    """The groups of n ranks, whose sizes differ by at most 1; none is empty."""
    count = min(count, n)
    return [range(n * i // count, n * (i + 1) // count) for i in range(count)]


def leaders_of(n: int, count: int) -> Tuple[int, ...]:
    """The first rank of each group."""
    return tuple(group[0] for group in split(n, count))


def group_of(rank: int, n: int, count: int) -> range:
    """The group that ``rank`` is in; 0 <= rank < n."""
    return next(group for group in split(n, count) if rank in group)


def _place(rank: int, leaders: Sequence[int]) -> Optional[int]:
    if rank == SERVER:
        return SERVER
    return leaders.index(rank) if rank in leaders else None


TOPOLOGIES: Dict[str, Any] = {
    "server": Star,
    "all": AllToAll,
    "ring": Ring,
    "exponential": ExponentialGraph,
    "random": RandomGossip,
    "pairs": RandomPairs,
    "groups": GroupedTopology,
}


class TopologySpec(NamedTuple):
    """The choice of a topology: its name, and its options with their values."""

    name: str
    options: Tuple[Tuple[str, Any], ...] = ()

    @classmethod
    def from_text(cls, text: str) -> "TopologySpec":
        """Parse ``NAME:key=value,...``, such as groups:count=2,between=random:segments=4.

        Raises ValueError for an unknown name, key or value, listing the known ones.
        """
        name = name_of("topology", text, TOPOLOGIES)
        readers = TOPOLOGIES[name].options
        found = cls(name, tuple(typed(name, options_of(text, sorted(readers)), readers).items()))
        found.build()  # raises ValueError for values out of range
        return found

    def build(self, seed: int = 0) -> Topology:
        """The topology; seed: of its random draws, the same for all members of a run."""
        options = {key: each.build(seed) if isinstance(each, TopologySpec) else each for key, each in self.options}
        made: Topology = TOPOLOGIES[self.name](seed=seed, **options)
        return made

    @property
    def between(self) -> "TopologySpec":
        """The topology of the leaders of groups; gossip by default."""
        found: TopologySpec = dict(self.options).get("between", TopologySpec("random"))
        return found
