"""``--engine`` says what moves the gradients: the planner, or torch.distributed.

``auto`` ranks the clusters of both in one list, and those of a model in shares where that has none.
"""

import contextlib
from dataclasses import replace

import numpy as np

from backends.strategies.engine import OWN, Engine
from backends.strategies.strategy import PARAMETER_SERVER
from planner.errors import PlanError
from planner.plan import strategy_search
from planner.plan.rank import rank
from planner.plan.recommend import recommend
from planner.plan.recommendation import Recommendation
from planner.plan.texts import AUTO, parse_engine, parse_strategy
from planner.predict.request import RecommendRequest
from planner.predict.sample_efficiency import SampleEfficiencies
from planner.profile.file import Profile

TORCH_ENGINE = Engine.from_text("torch")
#: For models of which no device holds a whole replica; where any does, its exchange costs more.
IN_SHARES = Engine.from_text("torch:shard=full")


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
        return strategy_search.best_strategy(profile, request, strategy, efficiencies)
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
        by_torch = by_torch._replace(
            learning=by_torch.learning._replace(sample_efficiency=1.0, critical_batch=efficiencies.synchronous.images)
        )
    try:
        own = strategy_search.best_strategy(profile, request, strategy, efficiencies)
    except PlanError as error:
        for engine in (by_torch, by_torch.by(IN_SHARES)):
            with contextlib.suppress(PlanError):
                other = recommend(profile, engine)
                return replace(other, notes=(f"--engine planner ranks no cluster: {error}", *other.notes))
        raise
    try:
        return _beside(own, recommend(profile, by_torch._replace(weights=own.weights)))
    except PlanError as error:
        return replace(own, notes=(f"--engine torch ranks no cluster: {error}", *own.notes))


def _beside(own: Recommendation, other: Recommendation) -> Recommendation:
    """One ranking of the clusters of both; a device alone, which needs no engine, is in it once.

    Left out is who is in no cluster of either; notes tell whom only one engine leaves out.
    """
    part, names = other.parts[0], own.inputs.names
    members = part.predictions.candidates.members(len(part.inputs.names))
    once = (members.sum(axis=1) > 1) | ~members[:, np.isin(part.inputs.names, names)].any(axis=1)
    part = part._replace(predictions=part.predictions.at(once))
    left_out = [
        f"--engine {engine} leaves out {name}: {reason}"
        for engine, one, another in (("planner", own, other), ("torch", other, own))
        for name, reason in one.training.left_out.items()
        if name in another.inputs.names
    ]
    neither = {name: why for name, why in own.training.left_out.items() if name not in part.inputs.names}
    first = own.parts[0]._replace(training=own.training._replace(left_out=neither))
    return replace(
        own,
        parts=(first, part),
        ranking=rank([first.predictions, part.predictions], own.weights),
        notes=tuple(dict.fromkeys((*left_out, *own.notes, *other.notes))),
        details=tuple(dict.fromkeys((*own.details, *other.details))),
    )
