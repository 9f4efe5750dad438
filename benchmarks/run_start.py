"""Seconds until a run begins, beside the import of the framework on its slowest device.

    python benchmarks/run_start.py --devices 4

On devices of a lab (root) a job is trained with each exchange. Counted is from the command to the
event that all members begin: reaching the devices over SSH, sending them the project, importing
the framework, loading the job, and connecting the members. Importing is timed on all devices at
once, by a script that `planner launch` starts there: torch, and with --engine torch also what the
first DistributedDataParallel of a process imports.
"""

import shutil
import sys
import time

from commands import Failed, LabCommands, lab_of
from reporting import Spread, parser, show
from torch_engine import HANDWRITTEN, JOB

from planner.train import event_log
from planner.train.events import Started

TORCH = ("--engine", "torch", "--allow-plaintext")
EXCHANGES = {
    "parameter-server": ("--strategy", "parameter-server"),
    "allreduce": ("--strategy", "allreduce"),
    "--engine torch": TORCH,
}
IMPORT = """
import time
began = time.perf_counter()
import torch
imported = time.perf_counter()
import torch.distributed as dist
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
print("import", imported - began, time.perf_counter() - began)
"""


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
    for exchange, options in EXCHANGES.items():
        plan = _plan_of(exchange)
        lab.run("recommend", "--job", JOB, "--metric", "time", "--out", plan, *members, *options)
    rows: dict[str, tuple[list[float], list[float]]] = {exchange: ([], []) for exchange in EXCHANGES}
    for _ in range(rounds):
        torch_s, with_ddp_s = _imports_s(lab)
        for exchange, options in EXCHANGES.items():
            imports_s, starts_s = rows[exchange]
            imports_s.append(with_ddp_s if options == TORCH else torch_s)
            starts_s.append(_start_s(lab, _plan_of(exchange)))
    return [
        {
            "exchange": exchange,
            "import on the slowest, s": Spread.of(imports_s),
            "until all begin, s": Spread.of(starts_s),
            "more than the import, s": Spread.of(b - a for a, b in zip(imports_s, starts_s, strict=True)),
        }
        for exchange, (imports_s, starts_s) in rows.items()
    ]


def _imports_s(lab: LabCommands) -> tuple[float, float]:
    """Seconds of both imports, each of the slowest device."""
    done = lab.run("launch", _plan_of("allreduce"), "--allow-plaintext", "--", "python", "-c", IMPORT)
    told = [line.split()[-2:] for line in done.stdout.splitlines() if "import" in line]
    return max(float(torch_s) for torch_s, _ in told), max(float(with_ddp_s) for _, with_ddp_s in told)


def _plan_of(exchange: str) -> str:
    return f"{exchange.lstrip('-').replace(' ', '-')}.json"


def _start_s(lab: LabCommands, plan: str) -> float:
    """Seconds from the command to the event; those before the log was opened count as well."""
    began_s = time.time()
    lab.run("train", plan, "--steps", str(len(lab.devices)), "--allow-plaintext")
    events = lab.newest_run.events
    started_s = next(t_s for t_s, _, event in event_log.read(events) if isinstance(event, Started))
    opened_s = lab.newest_run.plan.stat().st_mtime  # written just after the log was opened
    return opened_s - began_s + started_s


if __name__ == "__main__":
    main()
