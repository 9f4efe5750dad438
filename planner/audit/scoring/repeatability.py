"""Repeatability compares repetitions of a run, which bounds the accuracy of any prediction."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats
from planner.audit.scoring.cases import Case, Estimates, Key
from planner.audit.scoring.selections import Spread


class Repeatability(NamedTuple):
    """Errors of the time of single runs: by the prediction and by the other repetitions."""

    predicted: Spread | None
    repeated: Spread | None


def from_other_repetitions(cases: Sequence[Case]) -> list[Estimates]:
    """Geometric means of each configuration's other repetitions, NaN without any.

    Their error is the difference between runs of one configuration. They are noisy themselves, so
    that a perfect prediction would have a somewhat smaller error.
    """
    logs: dict[Key, dict[int, Floats]] = defaultdict(dict)
    for case in cases:
        for key, log in zip(case.keys, np.log(np.transpose(case.measured)), strict=True):
            logs[key][case.repetition] = log
    return [Estimates(*np.exp([_of_others(logs[key], case.repetition) for key in case.keys]).T) for case in cases]


def repeatability(
    cases: Sequence[Case], predicted: Sequence[Estimates], repeated: Sequence[Estimates]
) -> Repeatability:
    """Errors of each run of a cluster that was measured in two or more repetitions.

    Each run counts by itself. In medians over repetitions the second error would cancel: the error
    of the first repetition as a prediction of the second is the opposite of the reverse.
    """
    parts = []
    for case, *estimates in zip(cases, predicted, repeated, strict=True):
        clusters = case.members.sum(axis=1) > 1
        parts.append(np.stack([each.time_s / case.measured.time_s - 1 for each in estimates])[:, clusters])
    errors = np.concatenate(parts, axis=1)
    known = errors[:, np.isfinite(errors).all(axis=0)]
    return Repeatability(*(Spread.of(each.tolist()) for each in known))


def _of_others(logs: Mapping[int, Floats], repetition: int) -> Floats:
    """The mean over all repetitions but one, NaN without any."""
    others = [log for each, log in logs.items() if each != repetition]
    mean: Floats = np.mean(others, axis=0) if others else np.full(2, np.nan)
    return mean
