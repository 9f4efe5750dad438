"""Find each strategy's sample efficiency and the critical batch in a race, for ``--strategy auto``.

    python benchmarks/sample_efficiency.py benchmarks/racing/dlion.toml race/results.jsonl \\
        [--out FILE.json]

A line of results is a run, as race.py writes it: where, with which seed and strategy, and its
evaluations. Until it reached the target it had made so many steps, whose images follow from the
strategy's batches. Written to the working folder, where auto looks first, unless it is to be the
one that comes with the program.
"""

import argparse
import datetime
import sys
from pathlib import Path

from racing import images, racefile, records
from racing.efficiency import of_race

from planner.errors import PlannerError
from planner.json_records import save
from planner.paths import SAMPLE_EFFICIENCY
from planner.plan.strategy_search import EQUAL
from planner.predict.sample_efficiency import SampleEfficiencies, Source, newest


def main() -> None:
    options = _arguments()
    try:
        found = _measured(options.race, options.results)
        save(found._replace(rounds=newest(Path()).rounds), options.out)  # which other runs tell
    except PlannerError as error:
        sys.exit(str(error))
    for each in (*found.measured, *found.missed):
        told = f"missed the target in {each.missed} of {each.pairs}" if each.missed else f"{each.mean:.2f}"
        print(f"{each.strategy}: {told} ({each.least:.2f} to {each.most:.2f} in {each.pairs} pairs of runs)")
    known = "none was seen" if found.critical_batch is None else f"{found.critical_batch:.0f} images"
    print(f"critical batch: {known}")


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("race", type=Path, help="the race file")
    made.add_argument("results", type=Path, nargs="+")
    made.add_argument("--out", type=Path, default=Path(SAMPLE_EFFICIENCY))
    return made.parse_args()


def _measured(path: Path, results: list[Path]) -> SampleEfficiencies:
    race = racefile.load(path)
    samples = images.training_samples(race)
    members, runs = images.devices(race), [run for each in results for run in records.read(each)]
    found = images.reached(runs, race, samples, members)
    if not found:
        sys.exit(f"no run of {race.name} with a strategy of the planner's; name the results of this race")
    where = {run.environment for run in found}
    last_s = max(run.began_s for run in runs if run.setting.race == race.name)
    source = Source(
        model=race.model.rpartition(":")[2],
        data=race.path(race.data).name,
        images=samples,
        batch=race.batch,
        target=race.target,
        environments=tuple(sorted(where)),
        workers=tuple(sorted({members[label] for label in where})),
        date=datetime.date.fromtimestamp(last_s).isoformat(),
    )
    return of_race(source, found, EQUAL)


if __name__ == "__main__":
    main()
