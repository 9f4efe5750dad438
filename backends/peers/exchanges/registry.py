"""The registry selects the exchange for a topology and an aggregation."""

from typing import Callable, Dict

from backends.peers.exchanges.averaging import WeightAveraging
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.peers.exchanges.gradients import GradientExchange
from backends.peers.exchanges.grouped import HierarchicalExchange
from backends.peers.exchanges.pairing import PairwiseAveraging
from backends.peers.exchanges.push import PushSumExchange
from backends.peers.exchanges.ring import RingAllReduce
from backends.strategies.aggregation_rules import FACTORS
from backends.strategies.topologies.graphs import Ring as RingTopology
from backends.strategies.topologies.registry import GroupedTopology

#: Exchanges by aggregation. In a ring, all-reduce sums gradients, whatever the aggregation.
AGGREGATIONS: Dict[str, Callable[[ExchangeParts], Exchange]] = dict(
    dict.fromkeys(FACTORS, GradientExchange),
    **{"average": WeightAveraging, "push-sum": PushSumExchange, "pairwise": PairwiseAveraging},
)


def exchange(parts: ExchangeParts) -> Exchange:
    """The exchange for these parts."""
    if isinstance(parts.topology, GroupedTopology):
        return HierarchicalExchange(parts, exchange)
    if isinstance(parts.topology, RingTopology):
        return RingAllReduce(parts)
    return AGGREGATIONS[parts.strategy.aggregation](parts)
