"""Which exchange belongs to which topology and merge."""

from typing import Callable, Dict

from backends.exchanges.averaging import Averaging
from backends.exchanges.base import Exchange, Means
from backends.exchanges.gradients import Gradients
from backends.exchanges.grouped import Grouped
from backends.exchanges.pairing import Pairing
from backends.exchanges.push import Push
from backends.exchanges.ring import Ring
from backends.strategies.graphs import Ring as RingTopology
from backends.strategies.merging import FACTORS
from backends.strategies.topologies import Groups

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
