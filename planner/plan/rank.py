"""A ranking orders clusters by the operator's metrics.

Every metric is a product T^a P^b. Weights over several form their weighted geometric mean, which
needs no scale for seconds against joules; equal ones of time and energy order clusters as EDP does.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.errors import PlanError, suggest
from planner.predict.run import Predictions

#: Exponents of time and power.
METRICS = {"time": (1.0, 0.0), "power": (0.0, 1.0), "energy": (1.0, 1.0), "edp": (2.0, 1.0)}


class Ranking(NamedTuple):
    """The order of C candidates, best first, and the score of each candidate, (C,)."""

    order: Ints
    score: Floats


def parse_weights(text: str) -> dict[str, float]:
    """``time=0.3,energy=0.7`` as weights by metric. PlanError names the term that does not fit."""
    weights: dict[str, float] = {}
    for term in text.split(","):
        metric, _, number = (part.strip() for part in term.partition("="))
        try:
            weight = float(number)
        except ValueError:
            weight = -1.0
        if metric not in METRICS or metric in weights or not 0 <= weight < np.inf:
            raise PlanError(
                f"--weights {term.strip()!r}: expected METRIC=NUMBER, each metric once, no number negative, "
                f"such as time=0.3,energy=0.7; metrics: {', '.join(METRICS)}"
            )
        weights[metric] = weight
    if not sum(weights.values()):
        raise PlanError(f"--weights {text}: at least one weight must be above 0")
    return weights


def one_metric(name: str) -> dict[str, float]:
    """All the weight on one metric. Raises PlanError for an unknown one."""
    if name not in METRICS:
        raise PlanError(f"--metric {name}: unknown; {suggest(name, METRICS)}")
    return {name: 1.0}


def exponents(weights: Mapping[str, float]) -> tuple[float, float]:
    """(a, b) of T^a P^b for weights over METRICS."""
    total = sum(weights.values())
    time, power = (sum(w * METRICS[metric][part] for metric, w in weights.items()) / total for part in (0, 1))
    return time, power


def rank(parts: Sequence[Predictions], weights: Mapping[str, float]) -> Ranking:
    """Rank the candidates of all parts, one part after the other; smaller ones before equal ones.

    Metrics with power need all watts known.
    """
    time, power = exponents(weights)
    log_score = time * np.log(np.concatenate([part.time_s for part in parts]))
    if power:
        log_score = log_score + power * np.log(np.concatenate([part.power_w for part in parts]))
    size = np.concatenate([np.isfinite(part.cycle_s).sum(axis=1) for part in parts])
    return Ranking(np.lexsort((size, np.round(log_score, 12))), np.exp(log_score))
