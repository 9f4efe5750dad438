"""How well anyone could choose on this machine: by having measured every configuration before, in other repetitions."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from planner.audit.scoring.cases import Case, Estimates, Key
from planner.audit.scoring.summaries import Spread

NAME = "measured before"


class Repeatability(NamedTuple):
    """Errors of the time of single runs of clusters: as predicted, and as the other repetitions foretell it."""

    predicted: Spread | None
    repeated: Spread | None


def elsewhere(contests: Sequence[Case]) -> list[Estimates]:
    """What each contest's configurations measured in its other repetitions: geometric means, NaN without any.

    What this misses is what a run does unlike the next. It has noise of its own, so a prediction without any error
    would miss somewhat less.
    """
    found: dict[Key, dict[int, tuple[float, float]]] = defaultdict(dict)
    for each in contests:
        for key, *values in zip(each.keys, each.measured.time_s, each.measured.power_w, strict=True):
            found[key][each.repetition] = (float(values[0]), float(values[1]))
    return [_of_others(each, [found[key] for key in each.keys]) for each in contests]


def foretold(contests: Sequence[Case], ours: Sequence[Estimates], others: Sequence[Estimates]) -> Repeatability:
    """Of every run of a cluster of several that another repetition has, too, by itself: of medians over repetitions the
    second error would vanish, for what one repetition is off as another's prediction, that is off as the first one's.
    """
    parts = []
    for contest, *guesses in zip(contests, ours, others, strict=True):
        several = contest.members.sum(axis=1) > 1
        parts.append(np.stack([guess.time_s / contest.measured.time_s - 1 for guess in guesses])[:, several])
    errors = np.concatenate(parts, axis=1)
    known = errors[:, np.isfinite(errors).all(axis=0)]
    return Repeatability(*(Spread.of(each.tolist()) for each in known))


def _of_others(contest: Case, by_repetition: Sequence[dict[int, tuple[float, float]]]) -> Estimates:
    logs = np.full((len(by_repetition), 2), np.nan)
    for index, measured in enumerate(by_repetition):
        others = [values for repetition, values in measured.items() if repetition != contest.repetition]
        if others:
            logs[index] = np.log(others).mean(axis=0)
    return Estimates(*np.exp(logs).T)
