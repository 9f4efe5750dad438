"""``--strategy auto`` chooses the strategy that reaches a target best, by its sample efficiency.

EQUAL strategies make the same weights in as many steps; a race has measured how many images others
need. Each is predicted for the steps that reach the accuracy of the requested ones, which are those
of one device alone. The least measured sample efficiency counts, for it differs among places.
"""

from dataclasses import replace
from typing import NamedTuple

from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from planner.errors import PlanError
from planner.plan.recommend import recommend
from planner.plan.recommendation import Recommendation
from planner.plan.request import AUTO, RecommendRequest, parse_strategy
from planner.predict.sample_efficiency import SampleEfficiencies, images_factor
from planner.profile.file import Profile

#: Synchronous and lossless: only the time of a step differs, not what it teaches.
EQUAL = (
    "parameter-server:sync=synchronous",
    "baseline",
    "allreduce",
    "crossover-hierarchical:topology=groups:count=2,between=ring,aggregation=mean",
)


class Candidate(NamedTuple):
    """A strategy whose sample efficiency is known; the least that was measured."""

    strategy: Strategy
    sample_efficiency: float


def best_of(
    profile: Profile, request: RecommendRequest, strategy: str, efficiencies: SampleEfficiencies
) -> Recommendation:
    """``recommend`` for the strategy of that text, or the best candidate for ``auto``."""
    if strategy != AUTO:
        return recommend(profile, request._replace(strategy=parse_strategy(strategy)))
    request = request._replace(critical_batch=efficiencies.critical_batch)
    found, failed = [], None
    for each in candidates(efficiencies):
        try:
            found.append(recommend(profile, request._replace(**each._asdict())))
        except PlanError as error:  # such as peers that do not all reach one another
            failed = error
    if not found:
        assert failed is not None
        raise failed
    best = min(found, key=lambda each: float(each.ranking.score[each.ranking.order[0]]))
    names = ", ".join(each.costs.strategy.text for each in found)
    notes = (f"--strategy auto chose {best.costs.strategy.text} among {names}", *_notes(efficiencies, best))
    return replace(best, notes=(*best.notes, *notes))


def candidates(efficiencies: SampleEfficiencies) -> list[Candidate]:
    """EQUAL strategies, and those of which it was measured how many images they need."""
    equal = [Candidate(parse_strategy(text), 1.0) for text in EQUAL]
    others = [Candidate(parse_strategy(each.strategy), each.least) for each in efficiencies.measured]
    return equal + [other for other in others if not any(other.strategy.same_as(each.strategy) for each in equal)]


def _notes(efficiencies: SampleEfficiencies, best: Recommendation) -> list[str]:
    """What was assumed, and where it was measured."""
    source = efficiencies.source
    if source is None:
        return []
    notes = [
        f"{each.strategy} is taken to need {1 / each.least:.2f} times the images of synchronous workers, the most in "
        f"{each.pairs} pairs of runs ({1 / each.mean:.2f} on average, {1 / each.most:.2f} at the least)"
        for each in efficiencies.measured
        if best.costs.strategy._replace(optimizer=PARAMETER_SERVER.optimizer).same_as(parse_strategy(each.strategy))
    ]
    count = len(best.row(1).config.workers)
    if efficiencies.critical_batch is not None and count > 1:
        more = images_factor(count, best.costs.batch, efficiencies.critical_batch)
        alone = f"{count} synchronous workers need {more:.2f} times the images of one device alone"
        notes.append(f"{alone}; --steps are its steps")
    other = "" if source.model == best.costs.model else f", not with {best.costs.model}"
    measured = f"with {source.model} on {source.data} to {source.target:.0%} accuracy"
    places = f"({', '.join(source.environments)}; {source.date})"
    used = best.costs.strategy.optimizer
    if used != PARAMETER_SERVER.optimizer:
        other += f", and with {PARAMETER_SERVER.optimizer.name}, not {used.name}"
    return [*notes, f"sample efficiencies were measured {measured} {places}{other}"]
