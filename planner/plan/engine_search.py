"""``--engine`` says what moves the gradients: the planner, or torch.distributed.

``auto`` ranks the clusters of both in one list.
"""

from dataclasses import replace

import numpy as np

from backends.strategies.engine import OWN, Engine
from backends.strategies.strategy import PARAMETER_SERVER
from planner.errors import PlanError
from planner.plan import strategy_search
from planner.plan.rank import Scored, by_score
from planner.plan.recommend import recommend
from planner.plan.recommendation import Recommendation
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
        by_torch = by_torch._replace(sample_efficiency=1.0, critical_batch=efficiencies.synchronous.images)
    try:
        own = strategy_search.best_of(profile, request, strategy, efficiencies)
    except PlanError as error:
        try:
            other = recommend(profile, by_torch)
        except PlanError:
            raise error from None
        return replace(other, notes=(f"--engine planner ranks no cluster: {error}", *other.notes))
    try:
        return _beside(own, recommend(profile, by_torch._replace(weights=own.weights)))
    except PlanError as error:
        return replace(own, notes=(f"--engine torch ranks no cluster: {error}", *own.notes))


def _beside(own: Recommendation, other: Recommendation) -> Recommendation:
    """One ranking of the clusters of both; a device alone, which needs no engine, is in it once.

    Left out is who is in no cluster of either; notes tell whom only one engine leaves out.
    """
    members = other.predictions.candidates.members(len(other.costs.names))
    once = (members.sum(axis=1) > 1) | ~members[:, np.isin(other.costs.names, own.costs.names)].any(axis=1)
    other = replace(other, predictions=other.predictions.at(once))
    timed = [tuple(zip(each.costs.names, each.costs.frameworks, strict=True)) for each in (own, other)]
    every = tuple(dict.fromkeys(timed[0] + timed[1]))
    first, second = (
        Scored.of(each.predictions, own.weights).among(means, every)
        for each, means in zip((own, other), timed, strict=True)
    )
    left_out = [
        f"--engine {engine} leaves out {name}: {reason}"
        for engine, one, another in (("planner", own, other), ("torch", other, own))
        for name, reason in one.costs.left_out.items()
        if name in another.costs.names
    ]
    neither = {name: why for name, why in own.costs.left_out.items() if name not in other.costs.names}
    return replace(
        own,
        costs=own.costs._replace(left_out=neither),
        ranking=by_score(first.followed_by(second)),
        notes=tuple(dict.fromkeys((*left_out, *own.notes, *other.notes))),
        details=tuple(dict.fromkeys((*own.details, *other.details))),
        beside=other,
    )
