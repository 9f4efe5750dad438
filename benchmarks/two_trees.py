"""Steps of this tree beside those of another commit, on a device that trains alone.

    python benchmarks/two_trees.py 8e7cad6

The other commit is checked out beside this one, and plans; both trees then train each model by that
plan on this machine, in turn, on one thread and on the same images of noise. Counted are steps
between the first report of a run and its last: by the clock, with all that passes between steps,
and by the processor time of gradients, which other work on the machine disturbs less.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from commands import Commands, Failed
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
    try:
        with tempfile.TemporaryDirectory() as folder, _checkout(options.commit, Path(folder) / "before") as before:
            _prepare(Path(folder))
            trees = [Commands(Path(folder), {"PYTHONPATH": str(tree)}) for tree in (before, HERE)]
            rows = [
                _row(*trees, model, options.batch_size, options.seconds, options.rounds) for model in options.models
            ]
    except Failed as error:
        sys.exit(str(error))
    show(f"This tree beside {options.commit}, batch {options.batch_size}", rows, options.json)


@contextmanager
def _checkout(commit: str, path: Path) -> Iterator[Path]:
    git = ["git", "-C", str(HERE), "worktree"]
    added = subprocess.run(
        [*git, "add", "--quiet", "--detach", str(path), commit], capture_output=True, text=True, check=False
    )
    if added.returncode:
        raise Failed(f"{commit}: {added.stderr.strip()}")
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


def _row(old: Commands, new: Commands, model: str, batch: int, seconds: float, rounds: int) -> dict[str, object]:
    old.run(
        "profile", "--model", model, "--batch-size", str(batch), "--data", "data", "--steps", "100", "--fresh"
    )  # fmt: skip
    old.run("recommend", "--metric", "time", "--model", model)
    steps = max(20, round(seconds / json.loads((old.folder / "plan.json").read_text())["workers"][0]["cycle_s"]))
    pairs = [_pair(old, new, steps, new_first=number % 2 == 1) for number in range(rounds)]
    return {
        "model": model,
        "before, steps/s": Spread.of(1 / before.clock_s for before, _ in pairs),
        "here / before, steps/s": Spread.of(before.clock_s / here.clock_s for before, here in pairs),
        "by processor time": Spread.of(before.cpu_s / here.cpu_s for before, here in pairs),
    }


def _pair(old: Commands, new: Commands, steps: int, new_first: bool) -> tuple[Step, Step]:
    if new_first:
        here = _step(new, steps)
        return _step(old, steps), here
    return _step(old, steps), _step(new, steps)


def _step(tree: Commands, steps: int) -> Step:
    """The mean step of a run of one tree."""
    limits = ("--steps", str(steps), "--evaluate-every", str(steps), "--checkpoint-every", str(steps))
    tree.run("train", "--data", "data", "--learning-rate", "1e-4", *limits)
    events = [json.loads(line) for line in tree.newest_run.events.read_text().splitlines()]
    reports = [(event["t_s"], event["spent"]) for event in events if "spent" in event]
    if len(reports) < 3:
        raise Failed("a run reported too seldom to tell its rate; give more --seconds")
    # The last report comes after the evaluation at the end.
    (begin_s, first), (end_s, last) = reports[0], reports[-2]
    made = last["steps"] - first["steps"]
    return Step((end_s - begin_s) / made, (last["gradient_cpu_s"] - first["gradient_cpu_s"]) / made)


if __name__ == "__main__":
    main()
