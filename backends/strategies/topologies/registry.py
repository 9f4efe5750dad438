"""Two levels of workers, and every kind of topology by name."""

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from backends.strategies.option_text import named
from backends.strategies.topologies import groups
from backends.strategies.topologies.base import SERVER, MessageLoad, Topology
from backends.strategies.topologies.graphs import AllToAll, ExponentialGraph, RandomGossip, RandomPairs, Ring, Star


class GroupedTopology(Topology):
    """Gradients to the leader of a group, a topology between the leaders, weights back (Crossover-SGD, 3.3)."""

    options = {"count": int, "between": str}

    def __init__(self, count: int = 2, between: str = "random", seed: int = 0) -> None:
        super().__init__(seed)
        if count < 1:
            raise ValueError("count=%d: there must be at least 1 group" % count)
        self.count = count
        self.between = parse(between, seed)
        if isinstance(self.between, GroupedTopology):
            raise ValueError("between=%s: there are no groups of groups" % between)
        self.segments = self.between.segments

    def sends_to(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return self._among_leaders(self.between.sends_to, rank, n, step, segment)

    def receives_from(self, rank: int, n: int, step: int, segment: int = 0) -> Tuple[int, ...]:
        return self._among_leaders(self.between.receives_from, rank, n, step, segment)

    def traffic(self, rank: int, n: int) -> Tuple[MessageLoad, ...]:
        leaders = groups.leaders(n, self.count)
        place = _place(rank, leaders)
        if place is None:
            return (MessageLoad(1, 1.0),)
        within = () if rank == SERVER else (MessageLoad(len(self.followers(rank, n)), 1.0),)
        return within + self.between.traffic(place, len(leaders))

    def leader(self, rank: int, n: int) -> int:
        return groups.group_of(rank, n, self.count)[0]

    def followers(self, rank: int, n: int) -> Tuple[int, ...]:
        first, *others = groups.group_of(rank, n, self.count)
        return tuple(others) if rank == first else ()

    def _among_leaders(
        self, asked: Callable[[int, int, int, int], Tuple[int, ...]], rank: int, n: int, step: int, segment: int
    ) -> Tuple[int, ...]:
        leaders = groups.leaders(n, self.count)
        place = _place(rank, leaders)
        peers = () if place is None else asked(place, len(leaders), step, segment)
        return tuple(peer if peer == SERVER else leaders[peer] for peer in peers)


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


def parse(text: str, seed: int = 0) -> Topology:
    """``NAME:key=value,...``, such as random:segments=4 or groups:count=2,between=random:segments=4.

    seed: what chance comes from, the same for all members of a run. Raises ValueError naming what does not fit.
    """
    name, values = named("topology", text, {known: kind.options for known, kind in TOPOLOGIES.items()})
    return _built(TOPOLOGIES[name], seed, values)


def _built(kind: Callable[..., Topology], seed: int, values: Dict[str, Any]) -> Topology:
    return kind(seed=seed, **values)
