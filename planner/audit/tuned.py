"""The paper's form with numbers tuned by hand: here one alpha and one beta an audit, fitted to what they are judged by.

Gu et al. (Eq. 2 and 3) choose alpha and beta a device and a bandwidth. Fitted to the very measurements, two
numbers for time and two for power are more than an operator can know before, which favours this rival.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.audit.contests import Contest, Estimates, step_alone_s
from planner.predict import run_time

Floats = NDArray[np.float64]


class Tuned(NamedTuple):
    """alpha of every member of a cluster of several, beta of those that are not on the server's host."""

    alpha_time: float = 1.0
    beta_time: float = 1.0
    alpha_power: float = 1.0
    beta_power: float = 1.0


def estimate(contest: Contest, tuned: Tuned) -> Estimates:
    """T_j by Eq. 4 and P_j by Eq. 5 from T_i alpha beta and P_i alpha beta, P_i the busy watts."""
    return Estimates(
        _times(contest, tuned.alpha_time, tuned.beta_time),
        _watts(contest, tuned.alpha_power, tuned.beta_power),
    )


def fit(contests: Sequence[Contest]) -> Tuned:
    """Least squares on the logarithms of the measured times and watts of an audit's clusters of several."""
    measured = [contest.measured for contest in contests]

    def times(alpha: float, beta: float) -> Floats:
        return _residuals(contests, [_times(each, alpha, beta) for each in contests], [m.time_s for m in measured])

    def watts(alpha: float, beta: float) -> Floats:
        predicted = [_watts(each, alpha, beta) for each in contests]
        return _residuals(contests, predicted, [m.power_w for m in measured])

    return Tuned(*_least_squares(times), *_least_squares(watts))


def _times(contest: Contest, alpha: float, beta: float) -> Floats:
    cycle_s = step_alone_s(contest.costs) * _factors(contest, alpha, beta)
    return run_time(contest.steps, np.where(contest.members, 1 / cycle_s, 0.0), contest.costs.build_s)


def _watts(contest: Contest, alpha: float, beta: float) -> Floats:
    watts = contest.costs.busy_w * _factors(contest, alpha, beta)
    total: Floats = np.where(contest.members, watts, 0.0).sum(axis=1)
    return total


def _factors(contest: Contest, alpha: float, beta: float) -> Floats:
    """(C, N): 1 for a device alone, alpha on the server's host, alpha beta elsewhere."""
    factors = np.full(contest.members.shape, alpha * beta)
    factors[np.arange(len(contest.runs)), contest.candidates.hosts] = alpha
    factors[contest.members.sum(axis=1) == 1] = 1.0
    return factors


def _residuals(contests: Sequence[Contest], predicted: Sequence[Floats], measured: Sequence[Floats]) -> Floats:
    several = np.concatenate([contest.members.sum(axis=1) > 1 for contest in contests])
    apart = np.log(np.concatenate(predicted)) - np.log(np.concatenate(measured))
    found: Floats = apart[several & np.isfinite(apart)]
    return found


def _least_squares(residuals: Callable[[float, float], Floats]) -> tuple[float, float]:
    """alpha and beta; both 1 where nothing tells them."""
    from scipy.optimize import least_squares

    if not residuals(1.0, 1.0).size:
        return 1.0, 1.0
    alpha, beta = np.exp(least_squares(lambda logs: residuals(*np.exp(logs)), np.zeros(2)).x)
    return float(alpha), float(beta)
