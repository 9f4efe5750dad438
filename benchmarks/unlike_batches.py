"""Equal batches beside batches in proportion to speed, in one script on two devices.

    python benchmarks/unlike_batches.py

One device of a lab (root) has twice the cores of the other. The script of ``handwritten/`` takes
its batches from ``planner_batches.py``. `planner launch` starts it in turn with a plan of equal
batches, and with one of as many samples in a step that `planner recommend --global-batch` divides.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from commands import Failed, LabCommands, lab_in
from reporting import Spread, parser, show

from planner.plan.file import load_plan

HANDWRITTEN = Path(__file__).parent / "handwritten"
JOB = "job.py:job"
NAMES = ("fast", "slow")
#: First steps, which connect and fill caches.
WARM_STEPS = 5


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--cpus", type=float, default=0.5, help="cores of the fast device; the other has half")
    arguments.add_argument("--rate", default="1000mbit")
    arguments.add_argument("--global-batch", type=int, default=96)
    arguments.add_argument("--steps", type=int, default=30)
    arguments.add_argument("--rounds", type=int, default=5, help="pairs of runs")
    options = arguments.parse_args()
    spec = "\n".join(
        f'[devices.{name}]\ncpus = {cpus}\nrate = "{options.rate}"\n'
        for name, cpus in zip(NAMES, (options.cpus, options.cpus / 2), strict=True)
    )
    try:
        with tempfile.TemporaryDirectory() as folder, lab_in(Path(folder), NAMES, spec) as lab:
            row = _row(lab, options.global_batch, options.steps, options.rounds)
    except Failed as error:
        sys.exit(str(error))
    show(f"two devices 2 : 1, {options.global_batch} samples a step, links of {options.rate}", [row], options.json)


def _row(lab: LabCommands, samples: int, steps: int, rounds: int) -> dict[str, object]:
    for file in HANDWRITTEN.glob("*.py"):
        shutil.copy(file, lab.folder)
    each = str(samples // len(NAMES))
    lab.run("profile", "--job", JOB, "--batch-size", each, "--steps", "20000")
    _plan(lab, "equal.json", "--batch-size", each)
    divided = _plan(lab, "divided.json", "--global-batch", str(samples))
    pairs = [(_rate(lab, "equal.json", steps), _rate(lab, "divided.json", steps)) for _ in range(rounds)]
    return {
        "batches": divided,
        "equal, samples/s": Spread.of(samples * equal for equal, _ in pairs),
        "divided, samples/s": Spread.of(samples * proportional for _, proportional in pairs),
        "divided / equal": Spread.of(proportional / equal for equal, proportional in pairs),
    }


def _plan(lab: LabCommands, name: str, *batch: str) -> str:
    """Plan both devices; their batches."""
    members = [argument for device in NAMES for argument in ("--include", device)]
    lab.run(
        "recommend", "--job", JOB, "--engine", "torch", "--allow-plaintext", *members, *batch, "--metric", "time",
        "--out", name,
    )  # fmt: skip
    return ", ".join(str(size) for size in load_plan(lab.folder / name).batches.values())


def _rate(lab: LabCommands, plan: str, steps: int) -> float:
    """Steps/s of the script, of its slower rank."""
    done = lab.run(
        "launch", plan, "--allow-plaintext", "--",
        "python", "script.py", "--batch-size", "1", "--steps", str(steps), "--warm", str(WARM_STEPS),
    )  # fmt: skip
    said = [line.partition("] ")[2] for line in done.stdout.splitlines() if "steps_per_s" in line]
    return min(float(json.loads(line)["steps_per_s"]) for line in said)


if __name__ == "__main__":
    main()
