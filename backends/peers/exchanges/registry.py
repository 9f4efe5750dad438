"""Which exchange belongs to which topology and merge."""

from typing import Callable, Dict

from backends.peers.exchanges.averaging import Averaging
from backends.peers.exchanges.base import Exchange, Means
from backends.peers.exchanges.gradients import Gradients
from backends.peers.exchanges.grouped import Grouped
from backends.peers.exchanges.pairing import Pairing
from backends.peers.exchanges.push import Push
from backends.peers.exchanges.ring import Ring
from backends.strategies.aggregation import FACTORS
from backends.strategies.topologies.graphs import Ring as RingTopology
from backends.strategies.topologies.registry import Groups

#: By merge; those of gradients go round where the topology is a ring.
MERGES: Dict[str, Callable[[Means], Exchange]] = dict(
    dict.fromkeys(FACTORS, Gradients), **{"average": Averaging, "push-sum": Push, "pairwise": Pairing}
)


def exchange(means: Means) -> Exchange:
    """The exchange for these means."""
    if isinstance(means.topology, Groups):
        return Grouped(means, exchange)
    if isinstance(means.topology, RingTopology):
        return Ring(means)
    return MERGES[means.merge](means)
