"""What an image is worth to each strategy, from the results of a race, for ``--strategy auto``.

    python benchmarks/worth.py benchmarks/racing/dlion.toml race/results.jsonl [--out planner/worth.json]

A line of results is a run, as race.py writes it: where, with which seed and strategy, and its evaluations. Until it
reached the target it had made so many steps, whose images follow from the strategy's batches. Written to the working
folder, where auto looks first, unless it is to be the one that comes with the program.
"""

import argparse
import datetime
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner import training
from planner.batches import mean_batch
from planner.choose import EQUAL
from planner.decode import save
from planner.errors import PlannerError
from planner.exchange import strategy
from planner.runs import WORTH
from planner.worth import Reached, Source, measured, worths

Line = Mapping[str, Any]


def main() -> None:
    options = _arguments()
    race = tomllib.loads(options.race.read_text(encoding="utf-8"))
    data = options.race.parent / race["data"]
    samples = len(training.load_dataset(str(data)).train_labels)
    devices = _devices(race, options.race.parent)
    lines = [line for path in options.results for line in path.read_text(encoding="utf-8").splitlines()]
    runs = [run for run in map(json.loads, lines) if _counts(run, options.race.stem)]
    if not runs:
        sys.exit(f"no run of {options.race.stem} with a strategy of the planner's; name the results of this race")
    source = Source(
        model=race["model"].rpartition(":")[2],
        data=data.name,
        images=samples,
        batch=race["batch"],
        target=race["target"],
        environments=tuple(sorted({run["setting"]["environment"] for run in runs})),
        workers=tuple(sorted({devices[run["setting"]["environment"]] for run in runs})),
        date=datetime.date.fromtimestamp(max(run["began_s"] for run in runs)).isoformat(),
    )
    found = measured([_reached(run, race, samples, devices) for run in runs], EQUAL)
    save(worths(source, found), options.out)
    for each in found:
        told = f"missed the target in {each.missed} of {each.pairs}" if each.missed else f"{each.worth:.2f}"
        print(f"{each.strategy}: {told} ({each.least:.2f} to {each.most:.2f} in {each.pairs} pairs of runs)")


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("race", type=Path, help="the race file")
    made.add_argument("results", type=Path, nargs="+")
    made.add_argument("--out", type=Path, default=Path(WORTH))
    return made.parse_args()


def _counts(run: Line, race: str) -> bool:
    """Whether a line is a run of the race with one of the planner's strategies that came to something."""
    setting = run["setting"]
    try:
        strategy(setting["strategy"])
    except PlannerError:  # one device alone, or somebody else's
        return False
    return bool(setting["race"] == race and setting["purpose"] == "race" and run["outcome"])


def _devices(race: Line, folder: Path) -> dict[str, int]:
    """How many devices each environment has, all of which take part."""
    specs = {each["label"]: folder / each["spec"] for each in race["environments"]}
    return {label: len(tomllib.loads(path.read_text(encoding="utf-8"))["devices"]) for label, path in specs.items()}


def _reached(run: Line, race: Line, samples: int, devices: Mapping[str, int]) -> Reached:
    setting, outcome = run["setting"], run["outcome"]
    steps, n = _steps_to(outcome["curve"], race["target"]), devices[setting["environment"]]
    images = None
    if steps is not None:
        images = steps * mean_batch(setting["strategy"], n, race["batch"], samples, rounds=steps / n)
    return Reached(setting["environment"], setting["seed"], setting["strategy"], images)


def _steps_to(curve: Sequence[Line], target: float) -> float | None:
    """On the line from the last evaluation below the target to the first that reached it; None where none did."""
    before = {"step": 0, "accuracy": 0.0}
    for point in curve:
        if point["accuracy"] >= target:
            part = (target - before["accuracy"]) / (point["accuracy"] - before["accuracy"])
            return before["step"] + part * (point["step"] - before["step"])
        before = point
    return None


if __name__ == "__main__":
    main()
