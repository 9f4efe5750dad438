"""``--engine`` chooses what moves the gradients: the planner, torch.distributed, or the better."""

from dataclasses import replace

from backends.strategies.engine import OWN, Engine
from backends.strategies.strategy import PARAMETER_SERVER
from planner.errors import PlanError
from planner.plan import strategy_search
from planner.plan.recommend import Recommendation, recommend
from planner.plan.request import AUTO, RecommendRequest, parse_engine, parse_strategy
from planner.predict.sample_efficiency import SampleEfficiencies
from planner.profile.file import Profile
from planner.units import seconds

TORCH_ENGINE = Engine.from_text("torch")


def best_of(
    profile: Profile, request: RecommendRequest, engine: str, strategy: str, efficiencies: SampleEfficiencies
) -> Recommendation:
    """The ranking of the clusters of one engine, or of the better one for ``auto``.

    engine, strategy: their texts; a strategy is one of the planner's own engine. Where both were
    ranked, a note compares them. Raises PlanError.
    """
    if engine != AUTO:
        chosen = parse_engine(engine)
        if chosen.name == OWN:
            return strategy_search.best_of(profile, request, strategy, efficiencies)
        if strategy != PARAMETER_SERVER.text:
            raise PlanError(f"--strategy {strategy}: --engine {engine} has its own exchange; leave one of them out")
        return recommend(profile, request.by(chosen))
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
        return replace(other, notes=(*other.notes, f"--engine auto chose torch: {error}"))
    try:
        return _better(own, recommend(profile, by_torch._replace(weights=own.weights)))
    except PlanError as error:
        return replace(own, notes=(*own.notes, f"--engine auto chose planner: {error}"))


def _better(own: Recommendation, other: Recommendation) -> Recommendation:
    best = min((own, other), key=lambda each: float(each.ranking.score[each.ranking.order[0]]))
    shown = ", ".join(f"{each.costs.engine.text} {seconds(each.row(1).prediction.time_s)}" for each in (own, other))
    note = f"--engine auto chose {best.costs.engine.text}; the best cluster of each takes: {shown}"
    left_out = [f"--engine torch leaves out {name}: {reason}" for name, reason in other.costs.left_out.items()
                if name not in own.costs.left_out]  # fmt: skip
    return replace(best, notes=(*best.notes, note, *(left_out if best is own else ())))
