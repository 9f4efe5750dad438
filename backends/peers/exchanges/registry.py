"""Which exchange belongs to which topology and aggregation."""

from typing import Callable, Dict

from backends.peers.exchanges.averaging import WeightAveraging
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.peers.exchanges.gradients import GradientExchange
from backends.peers.exchanges.grouped import HierarchicalExchange
from backends.peers.exchanges.pairing import PairwiseAveraging
from backends.peers.exchanges.push import PushSumExchange
from backends.peers.exchanges.ring import RingAllReduce
from backends.strategies.aggregation import FACTORS
from backends.strategies.topologies.graphs import Ring as RingTopology
from backends.strategies.topologies.registry import GroupedTopology

#: By aggregation; those of gradients go round where the topology is a ring.
AGGREGATIONS: Dict[str, Callable[[ExchangeParts], Exchange]] = dict(
    dict.fromkeys(FACTORS, GradientExchange),
    **{"average": WeightAveraging, "push-sum": PushSumExchange, "pairwise": PairwiseAveraging},
)


def exchange(means: ExchangeParts) -> Exchange:
    """The exchange for these means."""
    if isinstance(means.topology, GroupedTopology):
        return HierarchicalExchange(means, exchange)
    if isinstance(means.topology, RingTopology):
        return RingAllReduce(means)
    return AGGREGATIONS[means.strategy.aggregation](means)
