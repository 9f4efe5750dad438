"""``--strategy auto``: the best way to a target, among strategies of which it is known what their images are worth.

EQUAL ones make the same weights in as many steps. Of others a race has to tell how many images they need (``worth``): a
strategy is predicted for as many of its steps as teach as much as the synchronous ones that were asked for.
"""

from collections.abc import Mapping
from typing import Any

from planner import exchange
from planner.errors import PlanError
from planner.plan import Recommendation, recommend
from planner.profilefile import Profile
from planner.worth import Worth, Worths

AUTO = "auto"

#: Synchronous and lossless: the same weights after as many steps, so that what a step costs is all that differs.
EQUAL = (
    "parameter-server:gate=synchronous",
    "baseline",
    "allreduce",
    "crossover-hierarchical:topology=groups:count=2,between=ring,merge=mean",
)


def best_of(
    profile: Profile, weights: Mapping[str, float], strategy: str, worths: Worths, **options: Any
) -> Recommendation:
    """``recommend`` for one strategy, or for the best of EQUAL and of those with a worth. Raises PlanError as that."""
    if strategy != AUTO:
        return recommend(profile, weights, strategy=strategy, **options)
    found, failed = [], None
    for text, worth in candidates(worths).items():
        try:
            found.append(recommend(profile, weights, strategy=text, worth=worth, **options))
        except PlanError as error:  # such as peers that do not all reach one another
            failed = error
    if not found:
        assert failed is not None
        raise failed
    best = min(found, key=lambda each: float(each.ranking.score[each.ranking.order[0]]))
    names = ", ".join(each.costs.strategy for each in found)
    told = (f"--strategy auto: {best.costs.strategy}, the best of {names}", *_notes(worths, best))
    return Recommendation(**{**best._asdict(), "notes": (*best.notes, *told)})  # whose length is that of its ranking


def candidates(worths: Worths) -> dict[str, float]:
    """What an image is worth, by strategy."""
    equal = dict.fromkeys(EQUAL, 1.0)
    known = {exchange.strategy(text) for text in EQUAL}
    return equal | {
        each.strategy: each.worth for each in worths.measured if exchange.strategy(each.strategy) not in known
    }


def _notes(worths: Worths, best: Recommendation) -> list[str]:
    """Where the worths come from."""
    source = worths.source
    if source is None or not worths.measured:
        return []
    told = [_one(each, best) for each in worths.measured if each.strategy == best.costs.strategy]
    where = (
        f"what images are worth was measured with {source.model} on {source.data} to {source.target:.0%} accuracy "
        f"({', '.join(source.environments)}; {source.date})"
    )
    other = "" if source.model == best.costs.model else f", not with {best.costs.model}"
    return [*told, where + other]


def _one(worth: Worth, best: Recommendation) -> str:
    return (
        f"{worth.strategy}: an image is worth {worth.worth:.2f} of a synchronous worker's "
        f"({worth.least:.2f} to {worth.most:.2f} in {worth.pairs} pairs of runs), so that its steps stand for "
        f"{best.steps:,} synchronous ones"
    )
