"""Repeatability compares repetitions of a run, which bounds the accuracy of any prediction."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

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
    by_key: dict[Key, dict[int, tuple[float, float]]] = defaultdict(dict)
    for case in cases:
        for key, time_s, power_w in zip(case.keys, case.measured.time_s, case.measured.power_w, strict=True):
            by_key[key][case.repetition] = (float(time_s), float(power_w))
    return [_of_others(case, [by_key[key] for key in case.keys]) for case in cases]


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


def _of_others(case: Case, by_repetition: Sequence[dict[int, tuple[float, float]]]) -> Estimates:
    logs = np.full((len(by_repetition), 2), np.nan)
    for index, measured in enumerate(by_repetition):
        others = [values for repetition, values in measured.items() if repetition != case.repetition]
        if others:
            logs[index] = np.log(others).mean(axis=0)
    return Estimates(*np.exp(logs).T)
