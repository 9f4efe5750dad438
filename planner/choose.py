"""``--strategy auto``: the best of those strategies whose steps are worth the same."""

from collections.abc import Mapping
from typing import Any

from planner.errors import PlanError
from planner.plan import Recommendation, recommend
from planner.profilefile import Profile

AUTO = "auto"

#: Synchronous and lossless: the same weights after as many steps, so that what a step costs is all that differs. What
#: sends less, waits for fewer or averages weights may need more steps, and how many no profile tells.
EQUAL = (
    "parameter-server:gate=synchronous",
    "baseline",
    "allreduce",
    "crossover-hierarchical:topology=groups:count=2,between=ring,merge=mean",
)


def best_of(profile: Profile, weights: Mapping[str, float], strategy: str, **options: Any) -> Recommendation:
    """``recommend`` for one strategy, or for the best of EQUAL. Raises PlanError as it does."""
    if strategy != AUTO:
        return recommend(profile, weights, strategy=strategy, **options)
    found, failed = [], None
    for text in EQUAL:
        try:
            found.append(recommend(profile, weights, strategy=text, **options))
        except PlanError as error:  # such as peers that do not all reach one another
            failed = error
    if not found:
        assert failed is not None
        raise failed
    best = min(found, key=lambda each: float(each.ranking.score[each.ranking.order[0]]))
    note = f"--strategy auto: {best.costs.strategy}, the best of {', '.join(each.costs.strategy for each in found)}"
    return Recommendation(**{**best._asdict(), "notes": (*best.notes, note)})  # whose length is that of its ranking
