"""From the word to begin to everyone's first step: models are built, and the initial weights handed out (T_i^B)."""

import numpy as np
from numpy.typing import NDArray

from planner import exchange
from planner.clusters import Candidates
from planner.costs import Costs

Floats = NDArray[np.float64]


def seconds(costs: Costs, candidates: Candidates) -> Floats:
    """(C, N) seconds until a member's first step begins, 0 for no member."""
    members = candidates.members(len(costs.names))
    build_s = np.where(members, costs.build_s, 0.0)
    alone = (members.sum(axis=1) == 1)[:, None]
    if exchange.through_server(exchange.strategy(costs.strategy)):
        return np.where(alone, build_s, np.where(members, _served(costs, candidates, members), 0.0))
    # Peers wait for one another, and have all made the same weights.
    return np.where(members, build_s.max(axis=1, keepdims=True), 0.0)


def _served(costs: Costs, candidates: Candidates, members: NDArray[np.bool_]) -> Floats:
    """The worker beside the server gives it its weights, for which the others wait (for ``server.PATIENCE_S`` at most,
    which differences in building seldom come near); and the first that a worker gets from there are all of them,
    whatever it gets later."""
    begun_s = (costs.build_s + np.diagonal(costs.weights_s))[candidates.hosts, None]
    later_s = costs.down_s.T[candidates.hosts]
    more_s = np.maximum(0.0, costs.weights_s[candidates.hosts] - np.where(members, later_s, 0.0))
    served_s: Floats = np.maximum(costs.build_s, begun_s) + more_s
    return served_s
