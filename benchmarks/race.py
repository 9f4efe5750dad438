"""A race compares strategies by time to a target, accuracy, bytes, joules and prediction.

    python benchmarks/race.py benchmarks/racing/dlion.toml --out race --minutes 40

Builds the lab of every environment in turn (root), profiles it once, tries every learning rate with
every strategy in one of them, and then makes all runs, strategies taking turns within each seed.
Every finished run is a line of OUT/results.jsonl at once: the same command goes on where it was
stopped. `race_report.py` shows what there is.
"""

import argparse
import os
import sys
import time
from pathlib import Path

from racing import planner_run, records, reference_run
from racing.jobs import next_job
from racing.live_environment import LiveEnvironments
from racing.racefile import Race, load
from racing.records import Finished, Setting
from racing.reference_systems import REFERENCE_SYSTEMS

from planner.cli import interrupts
from planner.errors import InterruptedRunError, PlannerError

RESULTS = "results.jsonl"
#: What a run needs beside its seconds: to begin, to hand over its weights, and to be judged.
BESIDES_S = 15.0


def main() -> None:
    options = _arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    interrupts.once()
    try:
        end_s = time.monotonic() + 60.0 * options.minutes
        for race in map(load, options.races):
            _run_all(race, options.lab, options.out, end_s)
    except (InterruptedRunError, KeyboardInterrupt):
        print("stopped; the same command goes on", file=sys.stderr)
        sys.exit(interrupts.status())
    except PlannerError as error:
        sys.exit(str(error))


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("races", type=Path, nargs="+", help="race files, one after the other")
    made.add_argument("--out", type=Path, default=Path("race"), help="folder of results, profiles and events")
    made.add_argument("--minutes", type=float, default=float("inf"), help="begin no run that would end later")
    made.add_argument("--lab", default="race", help="name of the lab to build")
    return made.parse_args()


def _run_all(race: Race, lab: str, out: Path, end_s: float) -> None:
    environments = LiveEnvironments(race, lab, out)
    try:
        while (setting := next_job(race, records.read(out / RESULTS))) is not None:
            if time.monotonic() + race.seconds_in(setting.environment) + BESIDES_S > end_s:
                print(f"{race.name}: the time is over; the same command goes on", file=sys.stderr)
                return
            run = _finished(setting, race, environments)
            records.append(out / RESULTS, run)
            print(_line(run), flush=True)
    finally:
        environments.close()


def _finished(setting: Setting, race: Race, environments: LiveEnvironments) -> Finished:
    """The run, or why it failed."""
    live = environments.at(setting.environment)
    run = Finished(setting, time.time(), os.getloadavg()[0])
    try:
        make = reference_run.run if setting.strategy in REFERENCE_SYSTEMS else planner_run.run
        return run._replace(outcome=make(setting, race, live, lambda: environments.play(setting.environment)))
    except InterruptedRunError:
        raise
    except PlannerError as error:
        environments.renew()
        return run._replace(error=str(error))


def _line(run: Finished) -> str:
    if run.outcome is None:
        return f"{run.setting.text}: {run.error}"
    target = "not reached" if run.outcome.target_s is None else f"{run.outcome.target_s:.1f} s"
    return f"{run.setting.text}: {run.outcome.steps} steps, accuracy {run.outcome.accuracy:.3f}, target {target}"


if __name__ == "__main__":
    main()
