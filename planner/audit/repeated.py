"""How well anyone could choose on this machine: by having measured every configuration before, in other repetitions."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from planner.audit.contests import Contest, Estimates, Key

NAME = "measured before"


def elsewhere(contests: Sequence[Contest]) -> list[Estimates]:
    """What each contest's configurations measured in its other repetitions: geometric means, NaN without any.

    What this misses is what a run does unlike the next. It has noise of its own, so a prediction without any error
    would miss somewhat less.
    """
    found: dict[Key, dict[int, tuple[float, float]]] = defaultdict(dict)
    for each in contests:
        for key, *values in zip(each.keys, each.measured.time_s, each.measured.power_w, strict=True):
            found[key][each.repetition] = (float(values[0]), float(values[1]))
    return [_of_others(each, [found[key] for key in each.keys]) for each in contests]


def _of_others(contest: Contest, by_repetition: Sequence[dict[int, tuple[float, float]]]) -> Estimates:
    logs = np.full((len(by_repetition), 2), np.nan)
    for index, measured in enumerate(by_repetition):
        others = [values for repetition, values in measured.items() if repetition != contest.repetition]
        if others:
            logs[index] = np.log(others).mean(axis=0)
    return Estimates(*np.exp(logs).T)
