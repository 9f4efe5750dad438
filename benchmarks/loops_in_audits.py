"""This measures how well statistics of the reference loop follow gradients in the runs of audits.

    python benchmarks/loops_in_audits.py audits/fleet-*

Each folder holds audits of one fleet (benchmarks/audit_fleets.py). In each run, the processor time
of a device's gradients and its rounds of the loop are related to the means of these over all runs
of the device, of those in which it trains alone and of those in clusters. Shown are, for each
statistic, the slope of gradients over it, their correlation, and how much their ratio varies: what
is left of the drift of a machine at equal speed.
"""

import argparse
import functools
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from reporting import parser, show

from planner.audit.steady_state import read_log
from planner.errors import RecordError
from planner.paths import RunFolder
from profilers.machine_speed import uninterrupted_s

STATISTICS: dict[str, Callable[[np.ndarray], float]] = {
    "lower quartile": lambda taken_s: float(np.percentile(taken_s, 25)),
    "median": lambda taken_s: float(np.median(taken_s)),
    "mean": lambda taken_s: float(np.mean(taken_s)),
    "mean of rounds up to 1.5 times their lower quartile": functools.partial(uninterrupted_s, interrupted=1.5),
    "mean of rounds up to twice their lower quartile": functools.partial(uninterrupted_s, interrupted=2.0),
}
FEWEST_ROUNDS = 10


class Seen(NamedTuple):
    """One device in one run. gradient_cpu_s: processor seconds of a gradient; taken_s: a round."""

    fleet: str
    device: str
    alone: bool
    gradient_cpu_s: float
    taken_s: np.ndarray


def main() -> None:
    arguments = parser(__doc__)
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("fleets", type=Path, nargs="+")
    options = arguments.parse_args()
    seen = [each for fleet in options.fleets for each in _of_fleet(fleet)]
    for what, alone in (("alone", True), ("in clusters", False)):
        chosen = [each for each in seen if each.alone == alone]
        show(f"devices {what}", [_row(name, chosen) for name in STATISTICS], options.json)


def _of_fleet(fleet: Path) -> Iterator[Seen]:
    for events in sorted(fleet.glob("audit-*/runs/*/*/*/events.jsonl")):
        try:
            log = read_log(RunFolder(events.parent))
        except RecordError as error:
            print(error)
            continue
        for name, reports in log.reports.items():
            part = [each for each in reports if each.t_s <= log.end_s][1:]  # the first tells of the beginning
            taken_s = np.array([each_s for one in part if one.speed for each_s in one.speed.taken_s])
            if len(part) > 1 and part[-1].spent.steps > part[0].spent.steps and taken_s.size >= FEWEST_ROUNDS:
                cpu_s = part[-1].spent.gradient_cpu_s - part[0].spent.gradient_cpu_s
                gradient_cpu_s = cpu_s / (part[-1].spent.steps - part[0].spent.steps)
                yield Seen(fleet.name, name, len(log.reports) == 1, gradient_cpu_s, taken_s)


def _row(name: str, seen: list[Seen]) -> dict[str, Any]:
    gradients = _within(seen, [each.gradient_cpu_s for each in seen])
    loops = _within(seen, [STATISTICS[name](each.taken_s) for each in seen])
    return {
        "statistic": name,
        "runs": len(seen),
        "gradients vary by, %": 100 * float(gradients.std()),
        "slope over it": float((loops * gradients).sum() / (loops**2).sum()),
        "correlation": float(np.corrcoef(loops, gradients)[0, 1]),
        "gradients over it vary by, %": 100 * float((gradients - loops).std()),
    }


def _within(seen: list[Seen], values: list[float]) -> np.ndarray:
    """Logarithms of the values over their mean for the same device."""
    of_device: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, each in enumerate(seen):
        of_device[each.fleet, each.device].append(index)
    found = np.log(np.array(values))
    for rows in of_device.values():
        found[rows] -= found[rows].mean()
    return found


if __name__ == "__main__":
    main()
