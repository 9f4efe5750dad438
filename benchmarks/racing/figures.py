"""Finished runs give means with intervals, by environment and strategy. Pure."""

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from .records import RACE, Finished, Outcome, Point

#: Without exchange there is nothing to be faster than; DLion's dense system is what others are
#: compared with.
REFERENCE = "baseline"


class Mean(NamedTuple):
    """A mean with half of its 95 % interval (Student's t), None for a single value."""

    value: float
    half: float | None
    values: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Mean":
        """Of at least one value."""
        found = list(values)
        half = None
        if len(found) > 1:
            t = float(stdtrit(len(found) - 1, 0.975))  # Student's; scipy.stats would take seconds to import
            half = t * statistics.stdev(found) / math.sqrt(len(found))
        return cls(statistics.fmean(found), half, len(found))

    def __str__(self) -> str:
        return f"{self.value:.3g}" if self.half is None else f"{self.value:.3g} ± {self.half:.2g}"


class Entry(NamedTuple):
    """All seeds of one strategy in one environment.

    errors: of failed runs
    seeds: of the outcomes
    """

    race: str
    environment: str
    strategy: str
    rate: float
    outcomes: tuple[Outcome, ...]
    errors: tuple[str, ...]
    seeds: tuple[int, ...]

    def mean(self, of: Callable[[Outcome], float | None]) -> Mean | None:
        """Over the seeds that have it; None where none has."""
        values = [value for outcome in self.outcomes if (value := of(outcome)) is not None]
        return Mean.of(values) if values else None

    @property
    def target_s(self) -> Mean | None:
        """Seconds to the target; None unless every seed reached it."""
        found = self.mean(lambda outcome: outcome.target_s)
        return found if found is not None and found.values == len(self.outcomes) and not self.errors else None

    @property
    def reached(self) -> int:
        """How many seeds reached the target."""
        return sum(outcome.target_s is not None for outcome in self.outcomes)


def entries(runs: Sequence[Finished]) -> list[Entry]:
    """Those of races, trials left out, in the order in which they were first run."""
    groups: dict[tuple[str, str, str], list[Finished]] = {}
    for run in runs:
        if run.setting.purpose == RACE:
            key = (run.setting.race, run.setting.environment, run.setting.strategy)
            groups.setdefault(key, []).append(run)
    return [
        Entry(
            *key,
            rate=found[-1].setting.rate,
            outcomes=tuple(run.outcome for run in found if run.outcome is not None),
            errors=tuple(run.error for run in found if run.error is not None),
            seeds=tuple(run.setting.seed for run in found if run.outcome is not None),
        )
        for key, found in groups.items()
    ]


def spread(outcome: Outcome) -> float | None:
    """Of accuracy over workers, best less worst; None where all have the same weights."""
    values = outcome.accuracies.values()
    return max(values) - min(values) if len(values) > 1 else None


def payload_ratio(outcome: Outcome) -> float | None:
    """What the cards sent over what the program counted."""
    traffic = outcome.traffic
    return traffic.sent_bytes / traffic.payload_bytes if traffic and traffic.payload_bytes else None


def step_s(outcome: Outcome) -> float:
    """Seconds from step to step of all workers together."""
    return outcome.time_s / outcome.steps


class Bounds(NamedTuple):
    """Of a ratio; equal where it is known, 0 or infinite where there is none."""

    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:.2f}"
        return f"at least {self.low:.2f}" if self.low else f"at most {self.high:.2f}"


def sooner(one: Entry, other: Entry) -> Bounds | None:
    """Geometric mean, over common seeds, of ``other``'s seconds to the target over ``one``'s.

    Who did not get there within the time of a run takes longer than that. None where that leaves it
    open, or without a seed in common.
    """
    found = [_ratio(*pair) for pair in _pairs(one, other)]
    if not found:
        return None
    bounds = Bounds(*(math.exp(statistics.fmean(map(_log, each))) for each in zip(*found, strict=True)))
    return None if bounds == (0.0, math.inf) else bounds


def _ratio(one: Outcome, other: Outcome) -> Bounds:
    mine, theirs = one.target_s or one.time_s, other.target_s or other.time_s
    low = 0.0 if one.target_s is None else theirs / mine
    return Bounds(low, math.inf if other.target_s is None else theirs / mine)


def _log(value: float) -> float:
    return math.log(value) if value else -math.inf


class Times(NamedTuple):
    """A geometric mean of ratios with its 95 % interval, None for a single one."""

    value: float
    low: float | None
    high: float | None

    def __str__(self) -> str:
        return f"{self.value:.2f}" + ("" if self.low is None else f" ({self.low:.2f} to {self.high:.2f})")


def times_as_long(one: Entry, other: Entry) -> Times | None:
    """Ratio of the seconds to the target, over the seeds in which both reached it."""
    logs = [
        math.log(mine.target_s / theirs.target_s)
        for mine, theirs in _pairs(one, other)
        if mine.target_s and theirs.target_s
    ]
    if not logs:
        return None
    value, half, _ = Mean.of(logs)
    if half is None:
        return Times(math.exp(value), None, None)
    return Times(*(math.exp(value + off) for off in (0.0, -half, half)))


def ahead(one: Entry, other: Entry) -> Mean | None:
    """Final accuracy of ``one`` less that of ``other``, over common seeds; None without any."""
    found = [mine.accuracy - theirs.accuracy for mine, theirs in _pairs(one, other)]
    return Mean.of(found) if found else None


def ahead_by_steps(one: Entry, other: Entry) -> Mean | None:
    """The same after as many steps, those of whoever made fewer, by the evaluations on the way."""
    found = []
    for mine, theirs in _pairs(one, other):
        if mine.curve and theirs.curve:
            step = min(mine.curve[-1].step, theirs.curve[-1].step)
            found.append(_accuracy_at(mine.curve, step) - _accuracy_at(theirs.curve, step))
    return Mean.of(found) if found else None


def _accuracy_at(curve: Sequence[Point], step: float) -> float:
    """On the line between two evaluations."""
    return float(np.interp(step, [point.step for point in curve], [point.accuracy for point in curve]))


def _pairs(one: Entry, other: Entry) -> Iterator[tuple[Outcome, Outcome]]:
    others = dict(zip(other.seeds, other.outcomes, strict=True))
    return ((mine, others[seed]) for seed, mine in zip(one.seeds, one.outcomes, strict=True) if seed in others)
