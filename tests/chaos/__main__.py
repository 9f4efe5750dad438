"""Chaos runs, one after the other (root): `python -m tests.chaos --runs 200`.

    python -m tests.chaos --seed 17 --keep        # one run again, its folder kept
    python -m tests.chaos --write-table           # puts the table into docs/reliability.md

Every run is a line of OUT at once: the same command goes on where it was stopped.
"""

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from planner.errors import PlannerError
from tests.chaos import devices, results
from tests.chaos.devices import Devices
from tests.chaos.results import Result
from tests.chaos.run import carry_out
from tests.chaos.scenario import scenario
from tests.running import ROOT

PAGE = ROOT / "docs" / "reliability.md"


def main() -> None:
    options = _arguments()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it, and what it starts
    if options.write_table:
        results.write_table(PAGE, results.read(options.out))
        return
    seeds = range(options.first, options.first + options.runs)
    done = {each.seed for each in results.read(options.out)}
    wanted = [seed for seed in seeds if seed not in done] if options.seed is None else [options.seed]
    try:
        with tempfile.TemporaryDirectory() as folder, devices.lab(options.lab, Path(folder)) as fleet:
            for seed in wanted:
                found = one(seed, fleet, options.keep)
                if options.seed is None:
                    results.append(options.out, found)
    except PlannerError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on")
    if options.seed is None:
        found_all = [each for each in results.read(options.out) if each.seed in seeds]
        print(results.table(found_all))
        sys.exit(any(each.violations for each in found_all))


def one(seed: int, fleet: Devices, keep: bool) -> Result:
    """Carry out a run and print what it was, what came of it, and what was wrong."""
    case = scenario(seed)
    print(case.text, flush=True)
    folder = Path(tempfile.mkdtemp(prefix=f"chaos-{seed}-"))
    found = results.result(case, carry_out(case, folder, fleet))
    print(f"    {found.outcome}, {found.seconds:.0f} s", flush=True)
    for each in found.violations:
        print(f"    VIOLATION {each}", flush=True)
    if keep or found.violations:
        print(f"    {folder}", flush=True)
    else:
        shutil.rmtree(folder)
    return found


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--runs", type=int, default=200)
    made.add_argument("--first", type=int, default=0, help="seed of the first run")
    made.add_argument("--seed", type=int, help="only this run, which is not added to the results")
    made.add_argument("--out", type=Path, default=Path("chaos.jsonl"), help="file of results")
    made.add_argument("--keep", action="store_true", help="keep the folders of sound runs too")
    made.add_argument("--lab", default="chaos", help="name of the lab to build")
    made.add_argument("--write-table", action="store_true", help="make no run; write the table of the results")
    return made.parse_args()


if __name__ == "__main__":
    main()
