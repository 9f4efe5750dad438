"""The paper's form with numbers tuned by hand: here one alpha and one beta an audit, fitted to what they are judged by.

Gu et al. (Eq. 2 and 3) choose alpha and beta a device and a bandwidth. Fitted to the very measurements, two
numbers for time and two for power are more than an operator can know before, which favours this rival.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from planner.arrays import Floats
from planner.audit.scoring.cases import Case, Estimates, step_alone_s
from planner.predict.predict import predict, run_time
from planner.profile.file import DeviceProfile


class FittedFactors(NamedTuple):
    """alpha of every member of a cluster of several, beta of those that are not on the server's host."""

    alpha_time: float = 1.0
    beta_time: float = 1.0
    alpha_power: float = 1.0
    beta_power: float = 1.0


def estimate(contest: Case, tuned: FittedFactors) -> Estimates:
    """T_j by Eq. 4 and P_j by Eq. 5 from T_i alpha beta and P_i alpha beta, P_i the busy watts."""
    return Estimates(
        _times(contest, tuned.alpha_time, tuned.beta_time),
        _watts(contest, tuned.alpha_power, tuned.beta_power),
    )


def fit(contests: Sequence[Case]) -> FittedFactors:
    """Least squares on the logarithms of the measured times and watts of an audit's clusters of several."""
    measured = [contest.measured for contest in contests]

    def times(alpha: float, beta: float) -> Floats:
        return _residuals(contests, [_times(each, alpha, beta) for each in contests], [m.time_s for m in measured])

    def watts(alpha: float, beta: float) -> Floats:
        predicted = [_watts(each, alpha, beta) for each in contests]
        return _residuals(contests, predicted, [m.power_w for m in measured])

    return FittedFactors(*_least_squares(times), *_least_squares(watts))


def _times(contest: Case, alpha: float, beta: float) -> Floats:
    cycle_s = step_alone_s(contest.costs) * _factors(contest, alpha, beta)
    return run_time(contest.steps, np.where(contest.members, 1 / cycle_s, 0.0), contest.costs.devices.build_s)


def _watts(contest: Case, alpha: float, beta: float) -> Floats:
    watts = contest.costs.devices.busy_w * _factors(contest, alpha, beta)
    total: Floats = np.where(contest.members, watts, 0.0).sum(axis=1)
    return total


def _factors(contest: Case, alpha: float, beta: float) -> Floats:
    """(C, N): 1 for a device alone, alpha on the server's host, alpha beta elsewhere."""
    factors = np.full(contest.members.shape, alpha * beta)
    factors[np.arange(len(contest.runs)), contest.candidates.hosts] = alpha
    factors[contest.members.sum(axis=1) == 1] = 1.0
    return factors


def _residuals(contests: Sequence[Case], predicted: Sequence[Floats], measured: Sequence[Floats]) -> Floats:
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


#: Time and power of all configurations, or the one to take whatever the metric.
Choice = Estimates | int


Rule = Callable[[Case, FittedFactors], Choice]


def planner(contest: Case, _: FittedFactors) -> Estimates:
    """What ``planner recommend`` predicts."""
    found = predict(contest.costs, contest.candidates, contest.steps)
    return Estimates(found.time_s, found.power_w)


def all_devices(contest: Case, _: FittedFactors) -> int:
    """The largest cluster, its server on the fastest device; of what was measured the nearest to that."""
    return int(np.argmax(contest.members.sum(axis=1)))  # the first of the largest


def fastest_device(contest: Case, _: FittedFactors) -> int:
    """The fastest device alone; of what was measured the nearest to that."""
    return 0


def by_flops(contest: Case, _: FittedFactors) -> Estimates:
    """In proportion to usable cores times their clock under load, cores alone where a device does not tell its clock.

    Processors only: no counter tells what a GPU could do at most, so that one counts as its host.
    """
    devices = _devices(contest)
    clocks_hz = [_clock_hz(device, contest.model) for device in devices]
    known = np.array([hz for hz in clocks_hz if hz is not None])
    return _in_proportion(contest, contest.costs.devices.cores * (known if known.size == len(devices) else 1.0))


def by_memory(contest: Case, _: FittedFactors) -> Estimates:
    """In proportion to main memory."""
    return _in_proportion(contest, np.array([float(d.facts.memory_bytes) for d in _devices(contest) if d.facts]))


def without_communication(contest: Case, _: FittedFactors) -> Estimates:
    """The sum of the throughputs that were profiled: alpha = beta = 1 (Eq. 2 to 5)."""
    return estimate(contest, FittedFactors())


#: By name, the planner's own first.
RULES: dict[str, Rule] = {
    "planner": planner,
    "all devices": all_devices,
    "fastest device": fastest_device,
    "by FLOPS": by_flops,
    "by memory": by_memory,
    "sum of rates": without_communication,
    "one α, one β": estimate,
}


OURS = next(iter(RULES))


def _in_proportion(contest: Case, speed: Floats) -> Estimates:
    """Step times of all devices from that of the one with the highest ``speed``, (N,)."""
    known = contest.costs
    timed = int(np.argmax(speed))
    step_s = step_alone_s(known)[timed] * speed[timed] / speed
    devices = known.devices._replace(gradient_s=step_s, update_s=np.zeros_like(step_s))
    foretold = contest._replace(costs=known._replace(devices=devices))
    return estimate(foretold, FittedFactors())


def _devices(contest: Case) -> list[DeviceProfile]:
    return [contest.profile.devices[name] for name in contest.costs.names]


def _clock_hz(device: DeviceProfile, model: str) -> float | None:
    windows = [step.window for step in device.steps if step.model == model]
    readings = [window.counters["f_cpu"].mean for window in windows if "f_cpu" in window.counters]
    return next((hz for hz in readings if hz), None)
