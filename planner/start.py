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
    """Who has built first, of several the nearest, gives a server its weights, for which the others wait; and the first
    that a worker gets from there are all of them, whatever it gets later."""
    built_s = np.where(members, costs.build_s, np.inf)
    first_s = built_s.min(axis=1, keepdims=True)
    given_s = np.where(built_s == first_s, costs.weights_s.T[candidates.hosts], np.inf).min(axis=1, keepdims=True)
    begun_s = first_s + given_s
    later_s = costs.down_s.T[candidates.hosts]
    more_s = np.maximum(0.0, costs.weights_s[candidates.hosts] - np.where(members, later_s, 0.0))
    served_s: Floats = np.maximum(costs.build_s, begun_s) + more_s
    return served_s
