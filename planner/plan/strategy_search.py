"""``--strategy auto`` chooses the strategy that reaches a target best, by its sample efficiency.

EQUAL strategies make the same weights in as many steps; a race has measured how many images others
need. Each is predicted for the steps that reach the accuracy of the requested ones, which are those
of one device alone. The least measured sample efficiency counts, for it differs among places. Of
rounds of local steps it is known by workers and steps, so that their length is chosen as well.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from planner.errors import PlanError
from planner.plan.break_even import least_of_clusters, rate_note
from planner.plan.compression import recommend_compressed
from planner.plan.recommend import recommend
from planner.plan.recommendation import Recommendation
from planner.plan.texts import AUTO, parse_strategy
from planner.predict.request import RecommendRequest
from planner.predict.sample_efficiency import RoundsEfficiency, SampleEfficiencies, Source, images_factor
from planner.profile.file import Profile
from profilers.stats import Z95

#: Synchronous and lossless: only the time of a step differs, not what it teaches.
EQUAL = (
    "parameter-server:sync=synchronous",
    "baseline",
    "allreduce",
    "crossover-hierarchical:topology=groups:count=2,between=ring,aggregation=mean",
)
#: Steps of the fastest member between two exchanges that are tried.
ROUNDS = (5, 10, 25, 50, 100, 200, 400, 800)


class Candidate(NamedTuple):
    """A strategy whose sample efficiency is known: the least that was measured, or of rounds."""

    strategy: Strategy
    sample_efficiency: float | None
    rounds_efficiency: RoundsEfficiency | None = None

    @property
    def name(self) -> str:
        """The strategy's text, without its rounds."""
        return self.strategy.text if self.rounds_efficiency is None else self.rounds_efficiency.strategy


def best_strategy(
    profile: Profile, request: RecommendRequest, strategy: str, efficiencies: SampleEfficiencies
) -> Recommendation:
    """``recommend`` for the strategy of that text, or the best candidate for ``auto``."""
    if strategy != AUTO:
        return recommend_compressed(profile, request.setting(strategy=parse_strategy(strategy)))
    found, failed = [], None
    for each in candidates(efficiencies):
        learning = request.learning._replace(
            sample_efficiency=each.sample_efficiency,
            critical_batch=efficiencies.synchronous.images,
            rounds=each.rounds_efficiency,
        )
        asked = request.setting(strategy=each.strategy)._replace(learning=learning)
        try:
            found.append((each, asked, recommend(profile, asked)))
        except PlanError as error:  # such as peers that do not all reach one another
            failed = error
    if not found:
        assert failed is not None
        raise failed
    chosen, _, best = min(found, key=lambda each: float(each[2].ranking.score[each[2].ranking.order[0]]))
    names = ", ".join(dict.fromkeys(each.name for each, _, _ in found))
    _, of_cluster, _ = min(found, key=lambda each: least_of_clusters(each[2]))
    chose = f"--strategy auto chose {best.inputs_at(1).strategy.text} among {names}"
    details = _notes(efficiencies, best) if chosen.rounds_efficiency is None else _rounds_notes(chosen, best)
    return replace(best, notes=(*rate_note(profile, of_cluster), *best.notes), details=(chose, *details, *best.details))


def candidates(efficiencies: SampleEfficiencies) -> list[Candidate]:
    """EQUAL strategies, and those of which it was measured how many images they need."""
    equal = [Candidate(parse_strategy(text), 1.0) for text in EQUAL]
    others = [Candidate(parse_strategy(each.strategy), each.least) for each in efficiencies.measured]
    rounds = [
        Candidate(parse_strategy(each.strategy).with_part("local", f"speed:every={steps}"), None, each)
        for each in efficiencies.rounds
        for steps in ROUNDS
        if min(each.steps) <= steps <= max(each.steps)
    ]
    others = [other for other in others if not any(other.strategy.same_as(each.strategy) for each in equal)]
    return equal + others + rounds


def _rounds_notes(chosen: Candidate, best: Recommendation) -> list[str]:
    """How many images rounds are taken to need, and where that was measured."""
    known = chosen.rounds_efficiency
    assert known is not None
    count = len(best.config(1).workers)
    if count == 1:
        return []
    factor = best.images_factor(1)
    low, high = factor * math.exp(-Z95 * known.error), factor * math.exp(Z95 * known.error)
    taken = (
        f"{count} workers with rounds of {chosen.strategy.local.every} steps of the fastest are taken to need "
        f"{factor:.2f} times the images of one alone ({low:.2f} to {high:.2f}), after {known.pairs} pairs of runs; "
        "--steps are its steps"
    )
    return [taken, f"sample efficiencies were measured {_where(known.source, best)}"]


def _notes(efficiencies: SampleEfficiencies, best: Recommendation) -> list[str]:
    """What was assumed, and where it was measured."""
    source = efficiencies.source
    if source is None:
        return []
    notes = [
        f"{each.strategy} is taken to need {1 / each.least:.2f} times the images of synchronous workers, the most in "
        f"{each.pairs} pairs of runs ({1 / each.mean:.2f} on average, {1 / each.most:.2f} at the least)"
        for each in efficiencies.measured
        if best.inputs.strategy._replace(optimizer=PARAMETER_SERVER.optimizer).same_as(parse_strategy(each.strategy))
    ]
    count, synchronous = len(best.config(1).workers), efficiencies.synchronous
    if synchronous.images is not None and count > 1:
        more = images_factor(count, best.inputs.batches.usual, synchronous.images)
        alone = f"{count} synchronous workers need {more:.2f} times the images of one device alone"
        notes.append(f"{alone}; --steps are its steps")
        if synchronous.source not in (None, source):
            notes.append(f"that was measured {_where(synchronous.source, best)}, of rounds of local steps")
    return [*notes, f"sample efficiencies were measured {_where(source, best)}"]


def _where(source: Source, best: Recommendation) -> str:
    other = "" if source.model == best.settings.model else f", not with {best.settings.model}"
    measured = f"with {source.model} on {source.data} to {source.target:.0%} accuracy"
    places = "; ".join(part for part in (", ".join(source.environments), source.date) if part)
    used = best.inputs.strategy.optimizer
    if used != PARAMETER_SERVER.optimizer:
        other += f", and with {PARAMETER_SERVER.optimizer.name}, not {used.name}"
    return f"{measured} ({places}){other}"
