"""Baselines choose a configuration by simpler rules than the planner's model.

Each rule either names one configuration or predicts the time and power of all of them.
"""

from collections.abc import Callable

import numpy as np

from planner.arrays import Floats
from planner.audit.scoring.cases import Case, Estimates, step_alone_s
from planner.audit.scoring.fitted_factors import FittedFactors, estimate
from planner.predict.predict import predict
from planner.profile.file import DeviceProfile

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
    scaled = costs._replace(devices=costs.devices._replace(gradient_s=step_s, update_s=np.zeros_like(step_s)))
    return estimate(case._replace(costs=scaled), FittedFactors())


def _devices(case: Case) -> list[DeviceProfile]:
    return [case.profile.devices[name] for name in case.costs.names]


def _clock_hz(device: DeviceProfile, model: str) -> float | None:
    windows = [step.window for step in device.steps if step.model == model]
    readings = [window.counters["f_cpu"].mean for window in windows if "f_cpu" in window.counters]
    return next((hz for hz in readings if hz), None)
