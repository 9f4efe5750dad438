"""This measures how well the reference loop follows the speed of training steps on a machine.

    python benchmarks/machine_speed.py --model resnet --seconds 60

In one process a few steps and a round of the loop take turns, each timed by its processor seconds,
while other work may run on the machine. Shown are, of means over so many turns, how much steps and
loop vary, their correlation, and how much the ratio of both varies: what is left of the drift of a
machine at equal speed.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from reporting import parser, show

from backends.data import dataset
from backends.data.loader import ArraySamples
from backends.frameworks.base import GradientSettings, OptimizerSettings, framework
from backends.training import step
from backends.training.workload import batches
from profilers.machine_speed import ReferenceLoop

GROUPS = (1, 8, 32)
#: Small enough that nothing overflows on noise.
RATE = 1e-4


def main() -> None:
    arguments = parser(__doc__)
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("--model", default="resnet")
    arguments.add_argument("--batch", type=int, default=16)
    arguments.add_argument("--steps", type=int, default=4, help="in a turn")
    arguments.add_argument("--seconds", type=float, default=60.0)
    options = arguments.parse_args()
    turns = _turns(_steps(options.model, options.batch, options.steps), ReferenceLoop(), options.seconds)
    rows = [_row(turns, group) for group in GROUPS if len(turns) >= 3 * group]
    show(f"{options.model}, batch {options.batch}", rows, options.json)


def _steps(model: str, batch: int, count: int) -> Callable[[], Any]:
    """So many steps on noise."""
    replica = framework("torch").build(model, (28, 28, 1), seed=0)
    noise = dataset.synthetic(replica.input_shape, replica.classes, 8 * batch, 0)
    drawn = batches(ArraySamples(noise.train_images, noise.train_labels), batch, 0)

    def make() -> None:
        for _ in range(count):
            step.gradient(replica, next(drawn), GradientSettings(rate=RATE))
            replica.update(OptimizerSettings(RATE, 0.9))

    return make


def _turns(steps: Callable[[], Any], loop: ReferenceLoop, seconds: float) -> list[tuple[float, float]]:
    """Processor seconds of the steps and of the loop, in turns."""
    steps()
    found, end_s = [], time.monotonic() + seconds
    while time.monotonic() < end_s:
        began_s = time.process_time()
        steps()
        found.append((time.process_time() - began_s, loop()))
    return found


def _row(turns: Sequence[tuple[float, float]], group: int) -> dict[str, Any]:
    count = len(turns) // group
    means = np.array(turns[: count * group]).reshape(count, group, 2).mean(axis=1)
    logs = np.log(means)
    steps, loops = logs.T
    return {
        "turns in a mean": group,
        "means": count,
        "loop, ms": 1e3 * statistics.fmean(means[:, 1].tolist()),
        "steps vary by, %": 100 * float(steps.std(ddof=1)),
        "loop varies by, %": 100 * float(loops.std(ddof=1)),
        "correlation": float(np.corrcoef(steps, loops)[0, 1]),
        "ratio varies by, %": 100 * float((steps - loops).std(ddof=1)),
    }


if __name__ == "__main__":
    main()
