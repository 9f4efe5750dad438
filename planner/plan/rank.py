"""A ranking orders clusters by the operator's metrics, and marks those that tie with the best.

Every metric is a product T^a P^b. Weights over several form their weighted geometric mean, which
needs no scale for seconds against joules; equal ones of time and energy order clusters as EDP does.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.errors import PlanError
from planner.predict.clusters import Candidates
from planner.predict.predict import Predictions
from planner.predict.prediction_error import OF_ALL, ErrorParts
from profilers.stats import Z95

#: Parts of an error that are of means timed in one framework.
TIMED = ("gradient", "copy", "update", "service")
#: Exponents of time and power.
METRICS = {"time": (1.0, 0.0), "power": (0.0, 1.0), "energy": (1.0, 1.0), "edp": (2.0, 1.0)}


class Standing(NamedTuple):
    """What a ranking says of one candidate; the fields are those of ``Ranking``."""

    score: float
    low: float
    high: float
    tied: bool


class Ranking(NamedTuple):
    """The order of C candidates and, by candidate, (C,) each, their scores.

    order: best first; tied: whether the best may be no better.
    low, high: 95 % interval of the score from the measured spread; equal to it where none is known.
    """

    order: Ints
    score: Floats
    low: Floats
    high: Floats
    tied: Bools

    def at(self, place: int) -> Standing:
        """The candidate at a place, 1 the best."""
        index = self.order[place - 1]
        return Standing(*(each[index].item() for each in self[1:]))


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
        raise PlanError(f"--metric {name}: unknown; metrics: {', '.join(METRICS)}")
    return {name: 1.0}


def exponents(weights: Mapping[str, float]) -> tuple[float, float]:
    """(a, b) of T^a P^b for weights over METRICS."""
    total = sum(weights.values())
    time, power = (sum(w * METRICS[metric][part] for metric, w in weights.items()) / total for part in (0, 1))
    return time, power


class Scored(NamedTuple):
    """What ranks C candidates of N devices.

    log_score: (C,), the logarithm of T^a P^b; errors: its relative standard errors, with more
        columns than devices where some were timed in two frameworks (``among``).
    """

    candidates: Candidates
    log_score: Floats
    errors: ErrorParts

    @classmethod
    def of(cls, predictions: Predictions, weights: Mapping[str, float]) -> "Scored":
        """Scored of all candidates. Power metrics need all watts known."""
        time, power = exponents(weights)
        log_score = time * np.log(predictions.time_s)
        if power:
            log_score = log_score + power * np.log(predictions.power_w)
        errors = predictions.time_errors.product(predictions.power_errors, time, power)
        return cls(predictions.candidates, log_score, errors)

    def among(self, timed: Sequence[tuple[str, str]], all_timed: Sequence[tuple[str, str]]) -> "Scored":
        """The same where the devices, of these names and frameworks, are some of all.

        What was timed in another framework is another mean, with a column of its own.
        """
        names = list(dict.fromkeys(name for name, _ in all_timed))
        devices = np.array([names.index(name) for name, _ in timed], np.int64)
        means = np.array([all_timed.index(each) for each in timed], np.int64)
        masks = self.candidates.members(len(timed)) @ (1 << devices)
        errors = self.errors._asdict()
        for part in set(errors) - set(OF_ALL):
            columns, count = (means, len(all_timed)) if part in TIMED else (devices, len(names))
            errors[part] = _widened(errors[part], columns, count)
        return Scored(Candidates(masks, devices[self.candidates.hosts]), self.log_score, ErrorParts(**errors))

    def followed_by(self, others: "Scored") -> "Scored":
        """These candidates, and after them others of the same devices."""
        masks, hosts = (np.concatenate(both) for both in zip(self.candidates, others.candidates, strict=True))
        errors = (np.concatenate(both) for both in zip(self.errors, others.errors, strict=True))
        log_score = np.concatenate([self.log_score, others.log_score])
        return Scored(Candidates(masks, hosts), log_score, ErrorParts(*errors))


def _widened(values: Floats, columns: Ints, count: int) -> Floats:
    """The same values in some of so many columns, and 0 in the others."""
    wide = np.zeros((len(values), count))
    wide[:, columns] = values
    return wide


def rank(predictions: Predictions, weights: Mapping[str, float]) -> Ranking:
    """Rank all candidates, smaller ones before equal ones. Power metrics need all watts known."""
    return by_score(Scored.of(predictions, weights))


def by_score(found: Scored) -> Ranking:
    """Rank what was scored, smaller clusters before equal ones."""
    (masks, hosts), log_score, errors = found
    size = found.candidates.members(errors.link.shape[1]).sum(axis=1)
    order = np.lexsort((hosts, masks, size, np.round(log_score, 12)))
    spread = Z95 * np.sqrt(errors.variance())
    best = order[0]
    apart = Z95 * np.sqrt(_variance_apart(errors, hosts, best))
    return Ranking(
        order=order,
        score=np.exp(log_score),
        low=np.exp(log_score - spread),
        high=np.exp(log_score + spread),
        tied=log_score - log_score[best] <= apart + 1e-9,
    )


def _variance_apart(errors: ErrorParts, hosts: Ints, best: np.int64) -> Floats:
    """(C,) variance of each candidate's log score against the best's.

    An error of a mean that both rest on cancels; those of links do so only with the same host.
    """
    apart = ErrorParts(*(part - part[best] for part in errors))
    other_host = (hosts != hosts[best])[:, None]
    link = np.where(other_host, np.hypot(errors.link, errors.link[best]), apart.link)
    return apart._replace(link=link).variance()
