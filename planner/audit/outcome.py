"""Measured clusters beside their predictions: whether the choice was the best, and what it cost."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from planner.plan.rank import exponents


class Outcome(NamedTuple):
    """One cluster of a ranking.

    place: in the ranking, 1 the best.
    kind: of its exchange.
    stand_ins: members that are slowed down.
    predicted_s, measured_s: of a step of all members together; None where the run failed.
    predicted_w, measured_w: None where unknown, and where a sensor has not measured every member.
    failure: why it could not be measured.
    """

    place: int
    server: str
    workers: tuple[str, ...]
    kind: str
    stand_ins: tuple[str, ...]
    predicted_s: float
    predicted_w: float | None
    measured_s: float | None = None
    measured_w: float | None = None
    failure: str = ""

    @property
    def error(self) -> float | None:
        """By which share of the prediction a step took longer than predicted."""
        return None if self.measured_s is None else self.measured_s / self.predicted_s - 1.0


class Verdict(NamedTuple):
    """The first cluster of a ranking beside the best that was measured.

    best: its place. regret: by which share the first one's score is above the best one's.
    """

    best: int
    regret: float

    @property
    def hit(self) -> bool:
        """Whether the first was the best."""
        return self.best == 1


def verdict(outcomes: Sequence[Outcome], weights: Mapping[str, float]) -> Verdict | None:
    """None unless the first cluster and another one were measured.

    weights: of the metrics by which the clusters are ranked.
    """
    scores = {each.place: score for each in outcomes if (score := _score(each, weights)) is not None}
    if 1 not in scores or len(scores) < 2:
        return None
    best = min(scores, key=lambda place: (scores[place], place))
    return Verdict(best, scores[1] / scores[best] - 1.0)


def errors_by_kind(outcomes: Sequence[Outcome]) -> dict[str, tuple[float, ...]]:
    """The signed relative errors of the clusters that were measured, by kind of exchange."""
    found: dict[str, tuple[float, ...]] = {}
    for each in outcomes:
        if each.error is not None:
            found[each.kind] = (*found.get(each.kind, ()), each.error)
    return found


def _score(outcome: Outcome, weights: Mapping[str, float]) -> float | None:
    """T^a P^b of a step, by the predicted watts where none were measured."""
    time, power = exponents(weights)
    watts = outcome.measured_w if outcome.measured_w is not None else outcome.predicted_w
    if outcome.measured_s is None or (power and watts is None):
        return None
    return float(outcome.measured_s**time * (watts or 1.0) ** power)
