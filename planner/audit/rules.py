"""What the planner is compared with: rules by which one could choose without it.

Those that only order by time take the watts under load of all members as the power of a cluster, as they stand
on a nameplate. Those in proportion to something time one device, the one with most of it, and foretell the others'
step times from that. None of them but ``one α, one β`` counts communication.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from planner.audit import tuned
from planner.audit.contests import Contest, Estimates, step_alone_s
from planner.audit.tuned import Tuned
from planner.predict import predict
from planner.profilefile import DeviceProfile

Floats = NDArray[np.float64]

#: Time and power of all configurations, or the one to take whatever the metric.
Guess = Estimates | int
Rule = Callable[[Contest, Tuned], Guess]


def planner(contest: Contest, _: Tuned) -> Estimates:
    """What ``planner recommend`` predicts."""
    found = predict(contest.costs, contest.candidates, contest.steps)
    return Estimates(found.time_s, found.power_w)


def all_devices(contest: Contest, _: Tuned) -> int:
    """The largest cluster, its server on the fastest device; of what was measured the nearest to that."""
    return int(np.argmax(contest.members.sum(axis=1)))  # the first of the largest


def fastest_device(contest: Contest, _: Tuned) -> int:
    """The fastest device alone; of what was measured the nearest to that."""
    return 0


def by_flops(contest: Contest, _: Tuned) -> Estimates:
    """In proportion to usable cores times their clock under load, cores alone where a device does not tell its clock.

    Processors only: no counter tells what a GPU could do at most, so that one counts as its host.
    """
    devices = _devices(contest)
    clocks_hz = [_clock_hz(device, contest.model) for device in devices]
    known = np.array([hz for hz in clocks_hz if hz is not None])
    return _in_proportion(contest, contest.costs.cores * (known if known.size == len(devices) else 1.0))


def by_memory(contest: Contest, _: Tuned) -> Estimates:
    """In proportion to main memory."""
    return _in_proportion(contest, np.array([float(d.facts.memory_bytes) for d in _devices(contest) if d.facts]))


def without_communication(contest: Contest, _: Tuned) -> Estimates:
    """The sum of the throughputs that were profiled: alpha = beta = 1 (Eq. 2 to 5)."""
    return tuned.estimate(contest, Tuned())


#: By name, the planner's own first.
RULES: dict[str, Rule] = {
    "planner": planner,
    "all devices": all_devices,
    "fastest device": fastest_device,
    "by FLOPS": by_flops,
    "by memory": by_memory,
    "sum of rates": without_communication,
    "one α, one β": tuned.estimate,
}

OURS = next(iter(RULES))


def _in_proportion(contest: Contest, speed: Floats) -> Estimates:
    """Step times of all devices from that of the one with the highest ``speed``, (N,)."""
    known = contest.costs
    timed = int(np.argmax(speed))
    step_s = step_alone_s(known)[timed] * speed[timed] / speed
    foretold = contest._replace(costs=known._replace(gradient_s=step_s, update_s=np.zeros_like(step_s)))
    return tuned.estimate(foretold, Tuned())


def _devices(contest: Contest) -> list[DeviceProfile]:
    return [contest.profile.devices[name] for name in contest.costs.names]


def _clock_hz(device: DeviceProfile, model: str) -> float | None:
    windows = [step.window for step in device.steps if step.model == model]
    readings = [window.counters["f_cpu"].mean for window in windows if "f_cpu" in window.counters]
    return next((hz for hz in readings if hz), None)
