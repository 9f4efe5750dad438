"""The paper's formula predicts with the factors alpha and beta (Gu et al., Eq. 2 to 5).

The paper chooses alpha and beta for each device and bandwidth by hand. Here they are fitted to the
same measurements that they are judged by: two numbers for time and two for power in a whole audit.
This favours the baseline, because no operator knows as much beforehand.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats
from planner.audit.scoring.cases import Case, Estimates, step_alone_s
from planner.predict.predict import run_time


class FittedFactors(NamedTuple):
    """alpha applies to every member of a cluster, beta to those not on the server's host."""

    alpha_time: float = 1.0
    beta_time: float = 1.0
    alpha_power: float = 1.0
    beta_power: float = 1.0


def estimate(case: Case, factors: FittedFactors) -> Estimates:
    """T_j by Eq. 4 and P_j by Eq. 5, from T_i alpha beta and P_i alpha beta (P_i: busy watts)."""
    return Estimates(
        _times_s(case, factors.alpha_time, factors.beta_time),
        _watts(case, factors.alpha_power, factors.beta_power),
    )


def fit(cases: Sequence[Case]) -> FittedFactors:
    """Least squares on the logarithms of the measured times and watts of all clusters."""
    times_s = [case.measured.time_s for case in cases]
    watts = [case.measured.power_w for case in cases]

    def time_residuals(alpha: float, beta: float) -> Floats:
        return _residuals(cases, [_times_s(case, alpha, beta) for case in cases], times_s)

    def power_residuals(alpha: float, beta: float) -> Floats:
        return _residuals(cases, [_watts(case, alpha, beta) for case in cases], watts)

    return FittedFactors(*_least_squares(time_residuals), *_least_squares(power_residuals))


def _times_s(case: Case, alpha: float, beta: float) -> Floats:
    cycle_s = step_alone_s(case.costs) * _factors(case, alpha, beta)
    return run_time(case.steps, np.where(case.members, 1 / cycle_s, 0.0), case.costs.devices.build_s)


def _watts(case: Case, alpha: float, beta: float) -> Floats:
    watts = case.costs.devices.busy_w * _factors(case, alpha, beta)
    total: Floats = np.where(case.members, watts, 0.0).sum(axis=1)
    return total


def _factors(case: Case, alpha: float, beta: float) -> Floats:
    """(C, N): 1 for a device alone, alpha on the server's host, alpha beta elsewhere."""
    factors = np.full(case.members.shape, alpha * beta)
    factors[np.arange(len(case.runs)), case.candidates.hosts] = alpha
    factors[case.members.sum(axis=1) == 1] = 1.0
    return factors


def _residuals(cases: Sequence[Case], predicted: Sequence[Floats], measured: Sequence[Floats]) -> Floats:
    clusters = np.concatenate([case.members.sum(axis=1) > 1 for case in cases])
    differences = np.log(np.concatenate(predicted)) - np.log(np.concatenate(measured))
    residuals: Floats = differences[clusters & np.isfinite(differences)]
    return residuals


def _least_squares(residuals: Callable[[float, float], Floats]) -> tuple[float, float]:
    """alpha and beta; both 1 without residuals."""
    from scipy.optimize import least_squares

    if not residuals(1.0, 1.0).size:
        return 1.0, 1.0
    alpha, beta = np.exp(least_squares(lambda logs: residuals(*np.exp(logs)), np.zeros(2)).x)
    return float(alpha), float(beta)
