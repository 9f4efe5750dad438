"""Between which rates of its links does a cluster pay beside the best device alone?"""

import math

import numpy as np

from planner.plan.recommend import recommend
from planner.plan.recommendation import Recommendation
from planner.predict.request import RecommendRequest
from planner.profile.file import Profile

#: Rates of every device's link between which the limit is looked for, bytes/s.
LEAST, MOST = 12_500.0, 1.25e9
#: The search ends at a rate that is known to this share.
PRECISION = 0.05
MBIT = 125_000.0
#: More devices have too many clusters to rank them all at every rate that is tried.
MOST_DEVICES = 10


def rate_note(profile: Profile, request: RecommendRequest) -> list[str]:
    """A note on the rate below which alone is better, with the strategy of a request.

    All links are taken to have the same rate, or that which was measured where it is less. No note
    where there is one device or more than MOST_DEVICES, or a rate is asked about already.
    """
    if request.rates or not 2 <= len(profile.devices) <= MOST_DEVICES:
        return []
    limit = break_even(profile, request)
    if limit is None or limit <= LEAST:
        return []
    if limit >= MOST:
        return [f"with {request.strategy.text}, a device alone is better at the measured rates of the links and below"]
    return [f"with {request.strategy.text}, alone is better below {limit / MBIT:.3g} Mbit/s on all links"]


def break_even(profile: Profile, request: RecommendRequest) -> float | None:
    """The rate of all links, bytes/s, at which the best cluster is as good as the best alone.

    LEAST or MOST where it lies beyond. None where there is no cluster, or none is alone.
    """
    names = recommend(profile, request).inputs.names  # a rate of one that is left out would be refused
    at_most = _advantage(profile, request, names, MOST)
    if at_most is None:
        return None
    if at_most <= 0:
        return MOST
    low, high = math.log(LEAST), math.log(MOST)
    if (_advantage(profile, request, names, LEAST) or 0.0) > 0:
        return LEAST
    while high - low > PRECISION:
        middle = (low + high) / 2
        pays = (_advantage(profile, request, names, math.exp(middle)) or 0.0) > 0
        low, high = (low, middle) if pays else (middle, high)
    return math.exp(high)


def _advantage(profile: Profile, request: RecommendRequest, names: tuple[str, ...], rate: float) -> float | None:
    """How much lower the best cluster's score is than the best alone's, with links of that rate."""
    asked = recommend(profile, request._replace(rates=dict.fromkeys(names, rate)))
    alone, together = _least(asked, alone=True), least_of_clusters(asked)
    return alone - together if math.isfinite(alone) and math.isfinite(together) else None


def least_of_clusters(found: Recommendation) -> float:
    """The best score of several devices; infinite where no cluster has several."""
    return _least(found, alone=False)


def _least(found: Recommendation, alone: bool) -> float:
    return float(np.min(found.ranking.score[found.several != alone], initial=math.inf))
