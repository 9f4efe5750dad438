"""Tables of what races came to: one for each environment, and the papers' claims beside them.

    python benchmarks/race_report.py race/results.jsonl

Means over seeds with 95 % intervals. target s: seconds to the target, where every seed reached it,
else how many did; x base: how many times as soon as DLion's baseline, seed by seed; spread: of
accuracy, best less worst worker; MB: sent by all network cards; J: emulated where the devices are a
lab's; cards: what cards sent over what the program counted; line: the busiest direction of a link,
of its rate; pred.: predicted over measured seconds for the steps that were made.
"""

import sys
from pathlib import Path
from typing import Any

from racing import claims, figures, records
from racing.figures import Entry, Mean
from reporting import parser, show

from planner.errors import RecordError


def main() -> None:
    made = parser(__doc__)
    made.add_argument("results", type=Path, nargs="+", help="results.jsonl of races")
    options = made.parse_args()
    try:
        runs = [run for path in options.results for run in records.read(path)]
    except RecordError as error:
        sys.exit(str(error))
    entries = figures.entries(runs)
    places = dict.fromkeys((entry.race, entry.environment) for entry in entries)
    for race, environment in places:
        there = [entry for entry in entries if (entry.race, entry.environment) == (race, environment)]
        reference = next((entry for entry in there if entry.strategy == figures.REFERENCE), None)
        show(f"{race}: {environment}", [_row(entry, reference) for entry in there], options.json)
    found = claims.claims(entries)
    if found:
        show("Claims", [claim._asdict() for claim in found], options.json)
    for entry in entries:
        for reason in entry.errors:
            print(f"{entry.race} {entry.environment} {entry.strategy}: {reason}", file=sys.stderr)


def _row(entry: Entry, reference: Entry | None) -> dict[str, Any]:
    ratio = figures.sooner(entry, reference) if reference is not None else None
    return {
        "strategy": entry.strategy,
        "n": len(entry.outcomes),
        "target s": entry.target_s or f"{entry.reached} of {len(entry.outcomes)}",
        "x base": ratio and str(ratio),
        "accuracy": entry.mean(lambda outcome: outcome.accuracy),
        "spread": entry.mean(figures.spread),
        "steps/s": _inverse(entry),
        "MB": _scaled(entry.mean(lambda outcome: outcome.card_bytes), 1e-6),
        "J": entry.mean(lambda outcome: outcome.energy_j),
        "cards": entry.mean(figures.payload_ratio),
        "line": entry.mean(lambda outcome: outcome.traffic.line_share if outcome.traffic else None),
        "pred.": entry.mean(lambda outcome: outcome.predicted_s / outcome.time_s if outcome.predicted_s else None),
    }


def _inverse(entry: Entry) -> Mean | None:
    return entry.mean(lambda outcome: outcome.steps / outcome.time_s)


def _scaled(mean: Mean | None, factor: float) -> Mean | None:
    if mean is None:
        return None
    return Mean(mean.value * factor, None if mean.half is None else mean.half * factor, mean.values)


if __name__ == "__main__":
    main()
