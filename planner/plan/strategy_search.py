"""``--strategy auto``: the best way to a target, among strategies of which it is known what their
images are worth.

EQUAL ones make the same weights in as many steps. Of others a race has to tell how many images
they need (``worth``): a strategy is predicted for as many of its steps as teach as much as those
that were asked for, which are a lone device's, wherever it was seen: the least that its images
were worth counts, for from place to place they differ several times.
"""

from typing import NamedTuple

from backends.strategies.strategy import Strategy
from planner.errors import PlanError
from planner.plan.recommend import Recommendation, recommend
from planner.plan.request import RecommendRequest
from planner.predict.sample_efficiency import SampleEfficiencies, images_factor
from planner.predict.strategy import parse_option
from planner.profile.file import Profile

AUTO = "auto"

#: Synchronous and lossless: the same weights after as many steps, so that what a step costs is
#: all that differs.
EQUAL = (
    "parameter-server:sync=synchronous",
    "baseline",
    "allreduce",
    "crossover-hierarchical:topology=groups:count=2,between=ring,aggregation=mean",
)


class Candidate(NamedTuple):
    """A strategy of which it is known what its images are worth, at the least."""

    strategy: Strategy
    worth: float


def best_of(profile: Profile, request: RecommendRequest, strategy: str, worths: SampleEfficiencies) -> Recommendation:
    """``recommend`` for one strategy, or for the best of EQUAL and of those with a worth. Raises
    PlanError as that.
    """
    if strategy != AUTO:
        return recommend(profile, request._replace(strategy=parse_option(strategy)))
    found, failed = [], None
    for each in candidates(worths):
        asked = request._replace(
            strategy=each.strategy, sample_efficiency=each.worth, critical_batch=worths.critical_batch
        )
        try:
            found.append(recommend(profile, asked))
        except PlanError as error:  # such as peers that do not all reach one another
            failed = error
    if not found:
        assert failed is not None
        raise failed
    best = min(found, key=lambda each: float(each.ranking.score[each.ranking.order[0]]))
    names = ", ".join(each.costs.strategy.text for each in found)
    told = (f"--strategy auto: {best.costs.strategy.text}, the best of {names}", *_notes(worths, best))
    return Recommendation(**{**best._asdict(), "notes": (*best.notes, *told)})  # whose length is that of its ranking


def candidates(worths: SampleEfficiencies) -> list[Candidate]:
    """EQUAL ones, and what was measured of others."""
    equal = [Candidate(parse_option(text), 1.0) for text in EQUAL]
    others = [Candidate(parse_option(each.strategy), each.least) for each in worths.measured]
    return equal + [other for other in others if not any(other.strategy.same_as(each.strategy) for each in equal)]


def _notes(worths: SampleEfficiencies, best: Recommendation) -> list[str]:
    """Where the worths come from."""
    source = worths.source
    if source is None:
        return []
    where = (
        f"what images are worth was measured with {source.model} on {source.data} to {source.target:.0%} accuracy "
        f"({', '.join(source.environments)}; {source.date})"
    )
    other = "" if source.model == best.costs.model else f", not with {best.costs.model}"
    return [*_of_strategy(worths, best), *_of_workers(worths, best), where + other]


def _of_strategy(worths: SampleEfficiencies, best: Recommendation) -> list[str]:
    return [
        f"{each.strategy}: an image counts as {each.least:.2f} of a synchronous worker's, the least that it was worth "
        f"in {each.pairs} pairs of runs ({each.worth:.2f} on average, {each.most:.2f} at most)"
        for each in worths.measured
        if each.strategy == best.costs.strategy.text
    ]


def _of_workers(worths: SampleEfficiencies, best: Recommendation) -> list[str]:
    """How many images more than one alone the best cluster's workers need."""
    count, batch = len(best.row(1).config.workers), best.costs.batch
    if worths.critical_batch is None or count == 1:
        return []
    more = images_factor(count, batch, worths.critical_batch)
    return [f"{count} synchronous workers need {more:.2f} times the images of one alone, whose steps --steps are"]
