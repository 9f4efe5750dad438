"""A race's joules to the target are counted with the idle watts of devices that take no part.

    python benchmarks/energy_bill.py benchmarks/racing/local.toml [MORE.toml ...] --out race

Means over seeds of runs that ended at their target. J: of the devices that trained; all on: with
the idle watts of the environment's other devices, as `recommend --count-idle` counts them, and
with `--base-watts` for what is on besides, such as a switch. x alone: over those of a device alone.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.spec import load_spec
from racing import figures, images, records
from racing.efficiency import ALONE
from racing.figures import Entry
from racing.live_environment import profile_path
from racing.racefile import Environment, Race, load
from reporting import parser, show

from planner.errors import PlannerError
from planner.predict.training import idle_watts
from planner.profile.file import Profile, load_profile


def main() -> None:
    made = parser(__doc__)
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument("races", type=Path, nargs="+")
    made.add_argument("--out", type=Path, default=Path("race"), help="folder of results and profiles")
    made.add_argument("--base-watts", type=float, default=0.0, help="that are drawn whoever trains")
    options = made.parse_args()
    try:
        entries = figures.entries(records.read(options.out / "results.jsonl"))
        rows = [
            row
            for race in map(load, options.races)
            for environment in race.environments
            for row in _rows(race, environment, entries, options.out, options.base_watts)
        ]
    except PlannerError as error:
        sys.exit(str(error))
    show("Joules to the target", rows, options.json)


def _rows(
    race: Race, environment: Environment, entries: list[Entry], out: Path, base_w: float
) -> Iterator[dict[str, Any]]:
    there = [entry for entry in entries if images.is_of(race, environment, entry) and entry.target_s is not None]
    if not there:
        return
    profile = load_profile(profile_path(out, race, load_spec(race.path(environment.profiled or environment.spec))))
    bills = {entry.strategy: _bill(entry, profile, base_w) for entry in there}
    alone_j, alone_on_j = bills.get(ALONE, (None, None))
    for entry in there:
        own_j, on_j = bills[entry.strategy]
        yield {
            "environment": f"{race.name}: {environment.label}",
            "strategy": entry.strategy,
            "s": entry.target_s,
            "J": own_j,
            "x alone": _over(own_j, alone_j),
            "all on, J": on_j,
            "all on, x alone": _over(on_j, alone_on_j),
        }


def _bill(entry: Entry, profile: Profile, base_w: float) -> tuple[float | None, float | None]:
    """Joules to the target of the devices that trained, and of all."""
    power = entry.mean(lambda outcome: outcome.energy_j and outcome.energy_j / outcome.time_s)
    seconds = entry.target_s
    if power is None or seconds is None:
        return None, None
    idle = sorted(map(idle_watts, profile.devices.values()))
    left_out_w = sum(idle[1:]) if entry.strategy == ALONE else 0.0
    return power.value * seconds.value, (power.value + left_out_w + base_w) * seconds.value


def _over(joules: float | None, alone_j: float | None) -> float | None:
    return None if joules is None or alone_j is None else joules / alone_j


if __name__ == "__main__":
    main()
