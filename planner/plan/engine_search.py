"""``--engine`` says what moves the gradients: the planner, torch.distributed, or the better."""

from dataclasses import replace

from backends.strategies.engine import OWN, Engine
from backends.strategies.strategy import PARAMETER_SERVER
from planner.errors import PlanError
from planner.plan import strategy_search
from planner.plan.rank import Scored, by_score
from planner.plan.recommend import Recommendation, recommend
from planner.plan.request import AUTO, RecommendRequest, parse_engine, parse_strategy
from planner.predict.sample_efficiency import SampleEfficiencies
from planner.profile.file import Profile

TORCH_ENGINE = Engine.from_text("torch")


def best_of(
    profile: Profile, request: RecommendRequest, engine: str, strategy: str, efficiencies: SampleEfficiencies
) -> Recommendation:
    """The ranking of the clusters of one engine, or of both for ``auto``.

    engine, strategy: their texts; a strategy is one of the planner's own engine. Notes tell whom
    torch.distributed leaves out, or why an engine ranks no cluster. Raises PlanError.
    """
    if engine == AUTO:
        return replace(_of_both(profile, request, strategy, efficiencies), engine=AUTO)
    chosen = parse_engine(engine)
    if chosen.name == OWN:
        return strategy_search.best_of(profile, request, strategy, efficiencies)
    if strategy != PARAMETER_SERVER.text:
        raise PlanError(f"--strategy {strategy}: --engine {engine} has its own exchange; leave one of them out")
    return recommend(profile, request.by(chosen))


def _of_both(
    profile: Profile, request: RecommendRequest, strategy: str, efficiencies: SampleEfficiencies
) -> Recommendation:
    if strategy != AUTO:
        parse_strategy(strategy)  # a misspelt one is no reason to choose torch
    by_torch = request.by(TORCH_ENGINE)
    if strategy == AUTO:  # which counts the images that synchronous workers need
        by_torch = by_torch._replace(sample_efficiency=1.0, critical_batch=efficiencies.critical_batch)
    try:
        own = strategy_search.best_of(profile, request, strategy, efficiencies)
    except PlanError as error:
        try:
            other = recommend(profile, by_torch)
        except PlanError:
            raise error from None
        return replace(other, notes=(*other.notes, f"--engine planner ranks no cluster: {error}"))
    try:
        return _beside(own, recommend(profile, by_torch._replace(weights=own.weights)))
    except PlanError as error:
        return replace(own, notes=(*own.notes, f"--engine torch ranks no cluster: {error}"))


def _beside(own: Recommendation, other: Recommendation) -> Recommendation:
    """One ranking of the clusters of both; a device alone, which needs no engine, is in it once."""
    several = other.predictions.candidates.members(len(other.costs.names)).sum(axis=1) > 1
    other = replace(other, predictions=other.predictions.at(several))
    names = tuple(dict.fromkeys(own.costs.names + other.costs.names))
    first, second = (Scored.of(each.predictions, own.weights).among(each.costs.names, names) for each in (own, other))
    left_out = [
        f"--engine torch leaves out {name}: {reason}"
        for name, reason in other.costs.left_out.items()
        if name not in own.costs.left_out
    ]
    notes = dict.fromkeys((*own.notes, *other.notes, *left_out))
    return replace(own, ranking=by_score(first.before(second)), notes=tuple(notes), beside=other)
