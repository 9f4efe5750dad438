"""A step in a run of one device beside a step in its profile, in turns.

    python benchmarks/profile_and_run.py --model resnet --cpus 0.75 --pairs 20

On one device of a lab (root) the model is profiled afresh and trained for some seconds at once
after, and so on. Every pair is a row; below are means and their 95 % intervals: how much longer a
step took in the run than was predicted from the profile right before it, and how much more
processor time a gradient cost.
"""

import json
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commands import Failed, LabCommands, lab_of
from reporting import parser, show

from backends.protocol.events import MemberTelemetry
from planner.profile.file import load_profile
from planner.train import event_log
from profilers.stats import student95

DATA = Path(__file__).parents[1] / "examples/fashion-mnist"
RATIOS = ("run / predicted", "processor time")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--model", default="resnet")
    arguments.add_argument("--batch", type=int, default=16)
    arguments.add_argument("--data", default=str(DATA), help="folder of images")
    arguments.add_argument("--framework", default="torch")
    arguments.add_argument("--cpus", type=float, default=0.75, help="cores of the device")
    arguments.add_argument("--pairs", type=int, default=20)
    arguments.add_argument("--checkpoints", type=int, default=0, help="in a run, evenly spaced; 0 for its default")
    arguments.add_argument("--seconds", type=float, default=15.0, help="of each run, as predicted")
    options = arguments.parse_args()
    try:
        with lab_of(1, options.cpus, "1gbit") as lab:
            rows = [_pair(lab, options) for _ in range(options.pairs)]
    except Failed as error:
        sys.exit(str(error))
    title = f"{options.model}, batch {options.batch}, {options.framework}, {options.cpus:g} of a core"
    show(title, [*rows, *_summary(rows)], options.json)


def _pair(lab: LabCommands, options: Any) -> dict[str, Any]:
    """A profile, and a run right after it."""
    lab.run(
        "profile", "--fresh", "--model", options.model, "--batch-size", str(options.batch), "--data", options.data,
        "--framework", options.framework,
    )  # fmt: skip
    (timed,) = load_profile(lab.folder / "profile.json").devices["d0"].steps
    lab.run("recommend", "--metric", "time", "--steps", "1000")
    plan = json.loads((lab.folder / "plan.json").read_text(encoding="utf-8"))
    steps = max(1, round(options.seconds / plan["workers"][0]["cycle_s"]))
    every = -(-steps // options.checkpoints) if options.checkpoints else 0
    lab.run("train", "--data", options.data, "--steps", str(steps), "--checkpoint-every", str(every))
    folder = lab.newest_run
    result = json.loads(folder.result.read_text(encoding="utf-8"))
    spent = [event.spent for _, _, event in event_log.read(folder.events) if isinstance(event, MemberTelemetry)][-1]
    return {
        "run": folder.path.name,
        "step, ms": 1e3 * spent.busy_s / spent.steps,
        "run / predicted": 1 / (1 + result["error"]["time_s"]),
        "processor time": spent.gradient_cpu_s / spent.steps / timed.cpu_s_per_step,
    }


def _summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means of the ratios, and half of their 95 % intervals."""
    known = {name: [row[name] for row in rows if row[name]] for name in RATIOS}
    half = {
        name: student95(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
        if len(values) > 1
        else None
        for name, values in known.items()
    }
    means = {name: statistics.fmean(values) if values else None for name, values in known.items()}
    return [{"run": "mean", "step, ms": None, **means}, {"run": "± 95 %", "step, ms": None, **half}]


if __name__ == "__main__":
    main()
