"""Baselines choose a configuration by simpler rules than the planner's model.

Each rule either names one configuration or predicts the time and power of all of them. The factors
alpha and beta (Gu et al., Eq. 2 to 5), which the paper chooses by hand for each device and
bandwidth, are fitted here to the same measurements that they are judged by: two numbers for time
and two for power in a whole audit. This favours the rule: no operator knows as much beforehand.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats
from planner.audit.scoring.cases import Case, Estimates, step_alone_s
from planner.predict.predict import predict, run_time
from planner.profile.file import DeviceProfile


class FittedFactors(NamedTuple):
    """alpha applies to every member of a cluster, beta to those not on the server's host."""

    alpha_time: float = 1.0
    beta_time: float = 1.0
    alpha_power: float = 1.0
    beta_power: float = 1.0


#: A rule's choice: time and power of all configurations, or the index of a configuration for every
#: metric.
Choice = Estimates | int
Rule = Callable[[Case, FittedFactors], Choice]


def recommended(case: Case, _: FittedFactors) -> Estimates:
    """The predictions of ``planner recommend``."""
    predictions = predict(case.costs, case.candidates, case.steps)
    return Estimates(predictions.time_s, predictions.power_w)


def all_devices(case: Case, _: FittedFactors) -> int:
    """The largest measured cluster, with the server on the fastest device."""
    return int(np.argmax(case.members.sum(axis=1)))  # the first of the largest


def fastest_device(_: Case, __: FittedFactors) -> int:
    """The fastest measured device alone."""
    return 0


def by_flops(case: Case, _: FittedFactors) -> Estimates:
    """Speed in proportion to usable cores times their clock under load.

    Without the clocks of all devices, cores count alone. A GPU counts as its host, because no
    counter gives its peak rate.
    """
    devices = _devices(case)
    clocks_hz = [_clock_hz(device, case.model) for device in devices]
    known = np.array([hz for hz in clocks_hz if hz is not None])
    return _in_proportion(case, case.costs.devices.cores * (known if known.size == len(devices) else 1.0))


def by_memory(case: Case, _: FittedFactors) -> Estimates:
    """Speed in proportion to main memory."""
    return _in_proportion(case, np.array([float(d.facts.memory_bytes) for d in _devices(case) if d.facts]))


def without_communication(case: Case, _: FittedFactors) -> Estimates:
    """The sum of the profiled throughputs: alpha = beta = 1 (Eq. 2 to 5)."""
    return estimate(case, FittedFactors())


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


#: Name of the planner's own choice among the rules.
PLANNER = "planner"

#: Rules by name, the planner's own first.
RULES: dict[str, Rule] = {
    PLANNER: recommended,
    "all devices": all_devices,
    "fastest device": fastest_device,
    "by FLOPS": by_flops,
    "by memory": by_memory,
    "sum of rates": without_communication,
    "one α, one β": estimate,
}


def _in_proportion(case: Case, speed: Floats) -> Estimates:
    """Estimates from the step time of the device with the highest ``speed``, (N,)."""
    costs = case.costs
    reference = int(np.argmax(speed))
    step_s = step_alone_s(costs)[reference] * speed[reference] / speed
    nothing_s = np.zeros_like(step_s)
    scaled = costs._replace(devices=costs.devices._replace(gradient_s=step_s, update_s=nothing_s))
    return estimate(case._replace(costs=scaled), FittedFactors())


def _devices(case: Case) -> list[DeviceProfile]:
    return [case.profile.devices[name] for name in case.costs.names]


def _clock_hz(device: DeviceProfile, model: str) -> float | None:
    windows = [step.window for step in device.steps if step.model == model]
    readings = [window.counters["f_cpu"].mean for window in windows if "f_cpu" in window.counters]
    return next((hz for hz in readings if hz), None)


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
