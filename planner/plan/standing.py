"""A standing is a cluster's score with its 95 % interval, and whether the best may be no better."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from planner.plan.rank import exponents
from planner.predict.clusters import Candidates
from planner.predict.inputs import Inputs
from planner.predict.interval import RECORDED, ModelErrors, Spread, spread
from planner.predict.run import Bill, Predictions
from planner.predict.training import Training
from profilers.stats import Z95

#: Scores that differ by less than this share tie; it is rounding.
ROUNDING = 1e-9


class Part(NamedTuple):
    """The clusters that one engine trains: what they are predicted from, and the predictions.

    bill: watts that count besides those of members; errors: of the model.
    """

    inputs: Inputs
    training: Training
    predictions: Predictions
    bill: Bill
    errors: ModelErrors = RECORDED

    def spread(self, rows: Sequence[int]) -> Spread:
        """The spread of some of the candidates."""
        candidates = self.predictions.candidates.at(np.array(rows, np.int64))
        return spread(self.inputs, candidates, self.training.settings.steps, self.bill, self.errors)

    def candidate(self, index: int) -> Candidates:
        """One of the candidates, alone."""
        return self.predictions.candidates.at(np.array([index]))


class Standing(NamedTuple):
    """What a ranking says of one cluster.

    score: of the metric; interval: its 95 % bounds; tie: whether the best may be no better.
    time_uncertainty, energy_uncertainty: half of the 95 % interval, as a share; None for energy
        where watts are unknown.
    """

    score: float
    interval: tuple[float, float]
    tie: bool
    time_uncertainty: float
    energy_uncertainty: float | None


class Contender(NamedTuple):
    """One cluster of a ranking: a candidate of a part, and its score."""

    part: Part
    candidate: int
    score: float


def standings(rows: Mapping[int, Contender], best: Contender, weights: Mapping[str, float]) -> dict[int, Standing]:
    """The standings of some clusters, by the keys of ``rows``. weights: of the metrics by name."""
    time, power = exponents(weights)
    spread_of_best = best.part.spread([best.candidate])
    found: dict[int, Standing] = {}
    for part in {id(row.part): row.part for row in rows.values()}.values():
        here = {key: row for key, row in rows.items() if row.part is part}
        drawn = part.spread([row.candidate for row in here.values()])
        each = zip(
            here.items(), drawn.deviation(time, power).tolist(), drawn.apart(spread_of_best, time, power).tolist(),
            drawn.deviation(1.0, 0.0).tolist(), drawn.deviation(1.0, 1.0).tolist(), strict=True,
        )  # fmt: skip
        for (key, row), deviation, apart, of_time, of_energy in each:
            factor = math.exp(Z95 * deviation)
            found[key] = Standing(
                score=row.score,
                interval=(row.score / factor, row.score * factor),
                tie=math.log(row.score / best.score) <= Z95 * apart + ROUNDING,
                time_uncertainty=math.expm1(Z95 * of_time),
                energy_uncertainty=None if math.isnan(of_energy) else math.expm1(Z95 * of_energy),
            )
    return found
