"""This measures how far predictions from two profiles of the same fleet differ in their errors.

    python benchmarks/repeated_profiles.py fleets-20261128 fleets-20261128-again fleets-20261128-day

Each folder holds fleets as `audit_fleets.py` leaves them. A fleet of the same number in two folders
was built twice, profiled and audited each time. What its two errors of a configuration differ by is
chance: the profile's, the runs' and the machine's. Were it all there is, the mean error would be
the mean difference over the square root of two.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from statistics import mean
from typing import Any

from reporting import parser, show

from planner.audit.folder import AuditFolder
from planner.audit.scoring.cases import cases_of
from planner.audit.scoring.comparison import Compared, Comparison, compare, without_drift

#: Of a configuration, whichever profile it was predicted from: fleet, audit, workers, server.
Key = tuple[str, str, frozenset[str], str]


def main() -> None:
    arguments = parser(__doc__)
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("sets", type=Path, nargs="+")
    options = arguments.parse_args()
    found: dict[Key, list[Comparison]] = defaultdict(list)
    for each in options.sets:
        for key, comparison in _of_set(each):
            found[key].append(comparison)
    pairs = [pair for each in found.values() for pair in combinations(each, 2)]
    show(
        "two profiles",
        [_row(what, pairs, alone) for what, alone in (("alone", True), ("clusters", False))],
        options.json,
    )


def _of_set(folder: Path) -> Iterator[tuple[Key, Comparison]]:
    for audit in sorted(folder.glob("fleet-[0-9][0-9]/audit-*")):
        cases = cases_of(AuditFolder(audit).load())
        for each in compare(cases, [without_drift(case) for case in cases]):
            yield (audit.parent.name, audit.name, frozenset(each.config.workers), each.config.server), each


def _row(what: str, pairs: list[tuple[Comparison, Comparison]], alone: bool) -> dict[str, Any]:
    steps = [(one.figures["step"], other.figures["step"]) for one, other in pairs if one.alone == alone]
    return {
        "configurations": what,
        "number": len(steps),
        "measured differ by, %": _differ(steps, lambda step: step.measured),
        "predicted differ by, %": _differ(steps, lambda step: step.predicted),
        "errors differ by, %": _differ(steps, lambda step: 1 + step.error),
        "at equal speed, %": _differ(steps, lambda step: 1 + step.steady_error),
        "mean error at equal speed, %": 100 * mean(abs(step.steady_error) for both in steps for step in both),
    }


def _differ(steps: list[tuple[Compared, Compared]], value: Callable[[Compared], float]) -> float:
    """Mean of the absolute logarithms of their ratios, in percent."""
    return 100 * mean(abs(math.log(value(one) / value(other))) for one, other in steps)


if __name__ == "__main__":
    main()
