"""How long a run takes to begin, beside the import of the framework on its slowest device.

    python benchmarks/run_start.py --devices 4

On devices of a lab (root) a job is trained with each exchange. Counted is from the command to the
event that all members begin: reaching the devices over SSH, sending them the project, importing
the framework, loading the job, and connecting the members. Importing is timed on all devices at
once, by a script that `planner launch` starts there.
"""

import shutil
import sys
import time

from lab_commands import Failed, LabCommands, lab_of
from reporting import Spread, parser, show
from torch_engine import HANDWRITTEN, JOB

from planner.train import event_log
from planner.train.events import Started

EXCHANGES = {
    "parameter-server": ("--engine", "planner", "--strategy", "parameter-server"),
    "allreduce": ("--engine", "planner", "--strategy", "allreduce"),
    "--engine torch": ("--engine", "torch"),
}
IMPORT = "import time; began = time.perf_counter(); import torch; print('import', time.perf_counter() - began)"


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--devices", type=int, default=4)
    arguments.add_argument("--cpus", type=float, default=0.4, help="cores of each device")
    arguments.add_argument("--rate", default="100mbit")
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    try:
        with lab_of(options.devices, options.cpus, options.rate) as lab:
            rows = _rows(lab, options.rounds)
    except Failed as error:
        sys.exit(str(error))
    show(f"{options.devices} devices of {options.cpus:g} cores at {options.rate}", rows, options.json)


def _rows(lab: LabCommands, rounds: int) -> list[dict[str, object]]:
    for file in HANDWRITTEN.glob("*.py"):
        shutil.copy(file, lab.folder)
    lab.run("profile", "--job", JOB, "--batch-size", "4", "--steps", "100")
    members = [argument for name in lab.devices for argument in ("--include", name)]
    lab.run("recommend", "--job", JOB, "--engine", "torch", "--allow-plaintext", "--metric", "time", *members)
    rounds_made = [
        (_import_s(lab), [_start_s(lab, *exchange) for exchange in EXCHANGES.values()]) for _ in range(rounds)
    ]
    imports_s = [import_s for import_s, _ in rounds_made]
    return [
        {
            "exchange": exchange,
            "import on the slowest, s": Spread.of(imports_s),
            "until all begin, s": Spread.of(starts_s[place] for _, starts_s in rounds_made),
            "more than the import, s": Spread.of(starts_s[place] - import_s for import_s, starts_s in rounds_made),
        }
        for place, exchange in enumerate(EXCHANGES)
    ]


def _import_s(lab: LabCommands) -> float:
    done = lab.run("launch", "plan.json", "--allow-plaintext", "--", "python", "-c", IMPORT)
    return max(float(line.split()[-1]) for line in done.stdout.splitlines() if "import" in line)


def _start_s(lab: LabCommands, *exchange: str) -> float:
    """Seconds from the command to the event; those before the log was opened count as well."""
    began_s = time.time()
    lab.run("train", *exchange, "--steps", str(len(lab.devices)), "--allow-plaintext")
    events = lab.newest_run.events
    started_s = next(t_s for t_s, _, event in event_log.read(events) if isinstance(event, Started))
    opened_s = lab.newest_run.plan.stat().st_mtime  # written just after the log was opened
    return opened_s - began_s + started_s


if __name__ == "__main__":
    main()
