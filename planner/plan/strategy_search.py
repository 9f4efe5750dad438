"""``--strategy auto``: the best way to a target, among strategies of which it is known what their images are worth.

EQUAL ones make the same weights in as many steps. Of others a race has to tell how many images they need (``worth``): a
strategy is predicted for as many of its steps as teach as much as those that were asked for, which are a lone device's,
wherever it was seen: the least that its images were worth counts, for from place to place they differ several times.
"""

from planner.errors import PlanError
from planner.plan.recommend import Recommendation, recommend
from planner.plan.request import RecommendRequest
from planner.predict import strategy as exchange
from planner.predict.sample_efficiency import SampleEfficiencies, images_factor
from planner.profile.file import Profile

AUTO = "auto"

#: Synchronous and lossless: the same weights after as many steps, so that what a step costs is all that differs.
EQUAL = (
    "parameter-server:gate=synchronous",
    "baseline",
    "allreduce",
    "crossover-hierarchical:topology=groups:count=2,between=ring,merge=mean",
)


def best_of(profile: Profile, request: RecommendRequest, worths: SampleEfficiencies) -> Recommendation:
    """``recommend`` for one strategy, or for the best of EQUAL and of those with a worth. Raises PlanError as that."""
    if request.strategy != AUTO:
        return recommend(profile, request)
    found, failed = [], None
    for text, worth in candidates(worths).items():
        asked = request._replace(strategy=text, sample_efficiency=worth, critical_batch=worths.critical_batch)
        try:
            found.append(recommend(profile, asked))
        except PlanError as error:  # such as peers that do not all reach one another
            failed = error
    if not found:
        assert failed is not None
        raise failed
    best = min(found, key=lambda each: float(each.ranking.score[each.ranking.order[0]]))
    names = ", ".join(each.costs.strategy for each in found)
    told = (f"--strategy auto: {best.costs.strategy}, the best of {names}", *_notes(worths, best))
    return Recommendation(**{**best._asdict(), "notes": (*best.notes, *told)})  # whose length is that of its ranking


def candidates(worths: SampleEfficiencies) -> dict[str, float]:
    """What an image is worth at the least, by strategy."""
    equal = dict.fromkeys(EQUAL, 1.0)
    known = {exchange.strategy(text) for text in EQUAL}
    return equal | {
        each.strategy: each.least for each in worths.measured if exchange.strategy(each.strategy) not in known
    }


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
        if each.strategy == best.costs.strategy
    ]


def _of_workers(worths: SampleEfficiencies, best: Recommendation) -> list[str]:
    """How many images more than one alone the best cluster's workers need."""
    count, batch = len(best.row(1).config.workers), best.costs.batch
    if worths.critical_batch is None or count == 1:
        return []
    more = images_factor(count, batch, worths.critical_batch)
    return [f"{count} synchronous workers need {more:.2f} times the images of one alone, whose steps --steps are"]
