"""Fit how much sooner workers with local steps reach a target, for ``--strategy auto``.

    python benchmarks/rounds_efficiency.py runs.jsonl --name diloco --outer nesterov \\
        [--out planner/predict/sample_efficiency.json]

The runs are those of local_updates.py. Every set of workers has the best of its learning rates by
the mean of its seeds, as a worker alone has. What is fitted is written into the file of sample
efficiencies, in place of what it has of that name.
"""

import argparse
import datetime
import json
import math
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from planner.errors import PlannerError
from planner.json_records import load, save
from planner.paths import SAMPLE_EFFICIENCY
from planner.predict.sample_efficiency import REMEDY, RoundsEfficiency, SampleEfficiencies, Source, newest

#: Local steps of every worker in a round.
Each = tuple[int, ...]


class Pair(NamedTuple):
    """Workers beside one alone with the same seed; ``sooner``: its steps over those of each.

    count, steps: of the equal workers that they stand for, see ``RoundsEfficiency``.
    """

    each: Each
    seed: int
    sooner: float

    @property
    def count(self) -> float:
        return sum(self.each) ** 2 / sum(steps**2 for steps in self.each)

    @property
    def steps(self) -> float:
        return sum(steps**2 for steps in self.each) / sum(self.each)


def main() -> None:
    options = _arguments()
    runs = [json.loads(line) for path in options.runs for line in path.read_text(encoding="utf-8").splitlines()]
    settings = {json.dumps(run["setting"]) for run in runs}
    if len(settings) > 1:
        sys.exit("the runs have different settings; name those of one setting")
    target = options.target or runs[0]["setting"]["target"]
    pairs, missed = paired(runs, options.outer, target)
    if len({pair.each for pair in pairs}) < 3:
        sys.exit("there are fewer than three sets of workers that reached the target, beside one alone that did")
    power, decline, error = fitted(pairs)
    found = RoundsEfficiency(
        options.name, power, decline, error,
        tuple(sorted({len(pair.each) for pair in pairs})), tuple(sorted({max(pair.each) for pair in pairs})),
        len(pairs), missed, _source(runs[0]["setting"], target),
    )  # fmt: skip
    try:
        _write(options.out, found)
    except PlannerError as error_of_file:
        sys.exit(str(error_of_file))
    for pair in pairs:
        expected = pair.count ** (power - decline * pair.steps)
        print(f"{'+'.join(map(str, pair.each))}, seed {pair.seed}: {pair.sooner:.2f} times sooner; fit {expected:.2f}")
    print(f"n^({power:.3f} - {decline:.5f} h), off by {math.expm1(error):.0%} (one deviation), {missed} missed")


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("runs", type=Path, nargs="+")
    made.add_argument("--name", required=True, help="the strategy, as it is called without its rounds")
    made.add_argument("--outer", required=True, help="of the runs that count")
    made.add_argument("--target", type=float, help="a lower accuracy than that of the runs")
    made.add_argument("--out", type=Path, default=Path(SAMPLE_EFFICIENCY))
    return made.parse_args()


def paired(runs: Iterable[dict[str, Any]], outer: str, target: float) -> tuple[list[Pair], int]:
    """Runs with their best rate beside one alone with its own, and how many missed the target."""
    alone, sets = {}, {}
    for run in runs:
        case = run["case"]
        # The fit is of whole changes; a cosine does not tell when a target is reached.
        if case.get("compressor", "dense") != "dense" or case.get("cosine"):
            continue
        steps = next((steps for steps, accuracy in run["curve"] if accuracy >= target), None)
        each = tuple(case["each"])
        if len(each) == 1:
            alone.setdefault(case["rate"], {})[case["seed"]] = steps
        elif case["outer"] == outer:
            sets.setdefault(each, {}).setdefault(case["rate"], {})[case["seed"]] = steps
    reference = _best(alone)
    pairs, missed = [], 0
    for each, by_rate in sorted(sets.items()):
        for seed, steps in sorted(_best(by_rate).items()):
            if reference.get(seed) is None:
                continue
            if steps is None:
                missed += 1
            else:
                pairs.append(Pair(each, seed, reference[seed] / steps))
    return pairs, missed


def _best(by_rate: dict[float, dict[int, int | None]]) -> dict[int, int | None]:
    """The runs of the rate with most seeds, fewest misses, and then the fewest steps."""

    def merit(by_seed: dict[int, int | None]) -> tuple[int, int, float]:
        reached = [steps for steps in by_seed.values() if steps is not None]
        return -len(by_seed), len(by_seed) - len(reached), statistics.fmean(reached) if reached else math.inf

    return min(by_rate.values(), key=merit) if by_rate else {}


def fitted(pairs: list[Pair]) -> tuple[float, float, float]:
    """Power, decline, and the deviation of what is left, by least squares of logarithms."""
    counts, sooner = (np.log([getattr(pair, name) for pair in pairs]) for name in ("count", "sooner"))
    steps = np.array([pair.steps for pair in pairs])
    terms = np.column_stack([counts, -counts * steps])
    (power, decline), *_ = np.linalg.lstsq(terms, sooner, rcond=None)
    left = sooner - terms @ (power, decline)
    error = math.sqrt(float(left @ left) / max(1, len(pairs) - 2))
    return float(power), float(decline), error


def _source(setting: dict[str, Any], target: float) -> Source:
    from backends.data import dataset

    images = len(dataset.load(setting["data"]).train_labels)
    return Source(
        setting["model"].rpartition(":")[2], Path(setting["data"]).name, images, setting["batch"], target,
        ("one process",), (), datetime.date.today().isoformat(),
    )  # fmt: skip


def _write(path: Path, found: RoundsEfficiency) -> None:
    known = load(SampleEfficiencies, path, REMEDY) if path.exists() else newest(Path())
    others = tuple(each for each in known.rounds if each.strategy != found.strategy)
    save(known._replace(rounds=(*others, found)), path)


if __name__ == "__main__":
    main()
