"""Steps of this tree beside those of another commit, on a device that trains alone.

    python benchmarks/two_trees.py 8e7cad6

The other commit is checked out beside this one, and plans; both trees then train each model by that
plan on this machine, in turn, on one thread and on the same images of noise. Counted are steps
between the first report of a run and its last, by the clock and by the processor time of gradients,
which other work on the machine disturbs less.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from lab_commands import COMMAND, Failed
from reporting import Spread, parser, show

HERE = Path(__file__).parents[1]
#: The five models of Gu et al.
MODELS = ("alexnet", "cifar10", "nin", "resnet", "squeezenet")
FLEET = """\
[devices.here]
address = "local"
environment = { OMP_NUM_THREADS = "1" }
"""
IMAGES, SHAPE = 512, (32, 32, 3)


class Step(NamedTuple):
    """Mean seconds of a step, by the clock and of the processor."""

    clock_s: float
    cpu_s: float


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("commit", help="the commit to compare with")
    arguments.add_argument("--models", nargs="+", default=MODELS)
    arguments.add_argument("--batch-size", type=int, default=16)
    arguments.add_argument("--seconds", type=float, default=10.0, help="of each run")
    arguments.add_argument("--rounds", type=int, default=7, help="pairs of runs of each model")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder, _checkout(options.commit, Path(folder) / "before") as before:
        _prepare(Path(folder))
        try:
            rows = [
                _row(Path(folder), before, model, options.batch_size, options.seconds, options.rounds)
                for model in options.models
            ]
        except Failed as error:
            sys.exit(str(error))
    show(f"This tree beside {options.commit}, batch {options.batch_size}", rows, options.json)


@contextmanager
def _checkout(commit: str, path: Path) -> Iterator[Path]:
    git = ["git", "-C", str(HERE), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(path), commit], check=True)
    try:
        yield path
    finally:
        subprocess.run([*git, "remove", "--force", str(path)], check=True)


def _prepare(folder: Path) -> None:
    (folder / "fleet.toml").write_text(FLEET)
    (folder / "data").mkdir()
    random = np.random.default_rng(0)
    images, labels = random.integers(0, 256, (IMAGES, *SHAPE), np.uint8), random.integers(0, 10, IMAGES)
    labels[:10] = np.arange(10)
    np.savez(folder / "data" / "noise.npz", x_train=images, y_train=labels, x_test=images[:16], y_test=labels[:16])


def _row(folder: Path, before: Path, model: str, batch: int, seconds: float, rounds: int) -> dict[str, object]:
    profile = ("--model", model, "--batch-size", str(batch), "--data", "data", "--steps", "100", "--fresh")
    _planner(before, folder, "profile", *profile)
    _planner(before, folder, "recommend", "--metric", "time", "--model", model)
    steps = max(20, round(seconds / json.loads((folder / "plan.json").read_text())["workers"][0]["cycle_s"]))
    pairs = [(_step(before, folder, steps), _step(HERE, folder, steps)) for _ in range(rounds)]
    return {
        "model": model,
        "before, steps/s": Spread.of(1 / old.clock_s for old, _ in pairs),
        "here / before, steps/s": Spread.of(old.clock_s / new.clock_s for old, new in pairs),
        "by processor time": Spread.of(old.cpu_s / new.cpu_s for old, new in pairs),
    }


def _step(tree: Path, folder: Path, steps: int) -> Step:
    """The mean step of a run of one tree."""
    limits = ("--steps", str(steps), "--evaluate-every", str(steps), "--checkpoint-every", str(steps))
    _planner(tree, folder, "train", "--data", "data", "--learning-rate", "1e-4", *limits)
    newest = max((folder / "runs").iterdir(), key=lambda each: each.stat().st_mtime_ns)
    events = [json.loads(line) for line in (newest / "events.jsonl").read_text().splitlines()]
    spent = [event["spent"] for event in events if "spent" in event]
    first, last = spent[0], spent[-1]
    made = last["steps"] - first["steps"]
    return Step((last["busy_s"] - first["busy_s"]) / made, (last["gradient_cpu_s"] - first["gradient_cpu_s"]) / made)


def _planner(tree: Path, folder: Path, *arguments: str) -> None:
    """Run a command of one tree. Raises Failed with what it said."""
    command = [sys.executable, "-c", COMMAND, *arguments]
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Failed(f"{tree.name}: planner {' '.join(arguments)}: {done.stderr.strip()}")


if __name__ == "__main__":
    main()
