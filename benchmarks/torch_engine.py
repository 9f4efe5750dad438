"""--engine torch beside a DistributedDataParallel script by hand, and beside its prediction.

    python benchmarks/torch_engine.py --devices 4 --rates 100mbit 1000mbit

On the same devices of a lab (root), on the same links and with the same model, data and batch, the
script of ``handwritten/`` is started by `planner launch`, and its job by `planner train --engine
torch`, in turn. Steps/s are those after the first steps, without evaluations and checkpoints, of
which the script makes none. Predicted is what `planner recommend --engine torch` said of these
devices before.
"""

import json
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from commands import Failed, LabCommands, lab_of
from reporting import Spread, parser, show

from backends.protocol.events import Progress
from planner.plan.file import load_plan
from planner.train import event_log

HANDWRITTEN = Path(__file__).parent / "handwritten"
JOB = "job.py:job"
#: First steps, which connect and fill caches.
WARM_STEPS = 5


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--devices", type=int, default=3)
    arguments.add_argument("--cpus", type=float, default=0.5, help="cores of each device")
    arguments.add_argument("--rates", nargs="+", default=["100mbit", "1000mbit"])
    arguments.add_argument("--batch-size", type=int, default=16)
    arguments.add_argument("--steps", type=int, default=150, help="of each device")
    arguments.add_argument("--rounds", type=int, default=5, help="pairs of runs at each rate")
    options = arguments.parse_args()
    rows = []
    try:
        for rate in options.rates:
            with lab_of(options.devices, options.cpus, rate) as lab:
                rows.append(_row(lab, rate, options.batch_size, options.steps, options.rounds))
    except Failed as error:
        sys.exit(str(error))
    show(f"{options.devices} devices of {options.cpus:g} cores, batch {options.batch_size}", rows, options.json)


def _row(lab: LabCommands, rate: str, batch: int, steps: int, rounds: int) -> dict[str, object]:
    for file in HANDWRITTEN.glob("*.py"):
        shutil.copy(file, lab.folder)
    lab.run("profile", "--job", JOB, "--batch-size", str(batch), "--steps", "20000")
    members = [argument for name in lab.devices for argument in ("--include", name)]
    lab.run("recommend", "--job", JOB, "--engine", "torch", "--allow-plaintext", "--metric", "time", *members)
    predicted = 1 / load_plan(lab.folder / "plan.json").workers[0].cycle_s
    pairs = [_pair(lab, batch, steps, engine_first=number % 2 == 1) for number in range(rounds)]
    return {
        "link": rate,
        "script, steps/s": Spread.of(script for script, _ in pairs),
        "engine, steps/s": Spread.of(engine for _, engine in pairs),
        "engine / script": Spread.of(engine / script for script, engine in pairs),
        "predicted / engine": Spread.of(predicted / engine for _, engine in pairs),
    }


def _pair(lab: LabCommands, batch: int, steps: int, engine_first: bool) -> tuple[float, float]:
    """Steps/s of the script and of the engine."""
    if engine_first:
        engine = _engine(lab, steps)
        return _script(lab, batch, steps), engine
    return _script(lab, batch, steps), _engine(lab, steps)


def _script(lab: LabCommands, batch: int, steps: int) -> float:
    """Steps/s of the script by hand, of its slowest rank."""
    done = lab.run(
        "launch", "plan.json", "--allow-plaintext", "--",
        "python", "script.py", "--batch-size", str(batch), "--steps", str(steps), "--warm", str(WARM_STEPS),
    )  # fmt: skip
    said = [line.partition("] ")[2] for line in done.stdout.splitlines() if "steps_per_s" in line]
    return min(float(json.loads(line)["steps_per_s"]) for line in said)


def _engine(lab: LabCommands, steps: int) -> float:
    """Steps/s of the engine, from what it tells of its progress."""
    total = str(steps * len(lab.devices))
    lab.run(
        "train", "--allow-plaintext", "--steps", total, "--evaluate-every", total, "--checkpoint-every", total
    )  # fmt: skip
    return _rate(event for _, _, event in event_log.read(lab.newest_run.events)) / len(lab.devices)


def _rate(events: Iterable[object]) -> float:
    """Steps/s of all members, from the first report after the warm-up to the last but the end."""
    seen = [each for each in events if isinstance(each, Progress)]
    seen = [each for each in seen if WARM_STEPS * len(each.workers) <= each.done < each.total]
    if len(seen) < 2:
        raise Failed("the engine reported too seldom to tell its rate; give more --steps")
    return (seen[-1].done - seen[0].done) / (seen[-1].elapsed_s - seen[0].elapsed_s)


if __name__ == "__main__":
    main()
