"""This measures how well the reference loop follows the speed of training steps and of messages.

    python benchmarks/machine_speed.py --model resnet --seconds 60

In one process a few steps, a message to itself, a round of the loop and of parts that it has or
might have take turns, each timed by its processor seconds, while other work may run on the machine.
Shown are, of means over so many turns, how much steps and each part vary, and how much the ratios
of steps and of messages to it vary: what is left of the drift of a machine at equal speed.
"""

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from reporting import parser, show

from backends.data import dataset
from backends.data.loader import ArraySamples
from backends.frameworks.base import GradientSettings, OptimizerSettings, framework
from backends.network import framing
from backends.profiling import own_messages
from backends.profiling.message_probe import exchange
from backends.protocol.orders import LoopbackEnds
from backends.training import step
from backends.training.workload import batches
from planner.agents.certificates import Authority
from profilers.cores import thread_cpu_s
from profilers.machine_speed import INTERPRETED, ROWS, SIDE, ReferenceLoop

#: Small enough that nothing overflows on noise.
RATE = 1e-4
MESSAGE, MESSAGE_BYTES = "a message of 256 kB", 1 << 18

#: Makes something, and gives its processor seconds.
Part = Callable[[], float]


def main() -> None:
    arguments = parser(__doc__)
    arguments.formatter_class = argparse.RawDescriptionHelpFormatter
    arguments.add_argument("--model", default="resnet")
    arguments.add_argument("--batch", type=int, default=16)
    arguments.add_argument("--steps", type=int, default=4, help="in a turn")
    arguments.add_argument("--turns", type=int, default=8, help="in a mean")
    arguments.add_argument("--seconds", type=float, default=60.0)
    options = arguments.parse_args()
    steps = _timed(_steps(options.model, options.batch, options.steps), time.process_time)  # of all its threads
    others = {name: _timed(part, thread_cpu_s) for name, part in _parts().items()}
    authority = Authority()
    ends = LoopbackEnds(authority.identity(framing.SERVER), authority.identity("sender"))
    with own_messages.to_itself(ends) as connection:
        message = functools.partial(_message, connection, memoryview(bytearray(MESSAGE_BYTES)))
        taken = _taken({"steps": steps, MESSAGE: message, "the loop": ReferenceLoop(), **others}, options.seconds)
    means = {name: np.log(_means(np.array(seconds), options.turns)) for name, seconds in taken.items()}
    rows = [_row(name, taken[name], means) for name in means]
    show(f"{options.model}, batch {options.batch}, means of {options.turns} turns", rows, options.json)


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


def _parts() -> dict[str, Callable[[], Any]]:
    """Both parts of the loop, and those of the one before it."""
    random = np.random.default_rng(0)
    matrix = random.uniform(size=(SIDE, SIDE)).astype(np.float32)
    vector = np.linspace(0.5, 1.5, 1 << 16, dtype=np.float32)
    source, places = random.uniform(size=1 << 20).astype(np.float32), random.integers(0, 1 << 20, 1 << 15)
    product, result, read = np.empty((ROWS, SIDE), np.float32), np.empty_like(vector), np.empty(places.size, np.float32)

    def passes() -> None:
        for _ in range(16):
            np.multiply(vector, vector, out=result)

    return {
        "product of matrices": lambda: np.einsum("ij,kj->ik", matrix[:ROWS], matrix, out=product),
        "interpreted code": lambda: sum(number * number for number in range(INTERPRETED)),
        "passes over a vector": passes,
        "random reads": lambda: np.take(source, places, out=read, mode="clip"),
    }


def _message(connection: framing.Connection, message: memoryview) -> float:
    """Sends a message; processor seconds of both ends."""
    return sum(exchange(connection, message)[1:])


def _timed(work: Callable[[], Any], clock: Callable[[], float]) -> Part:
    def part() -> float:
        began_s = clock()
        work()
        return clock() - began_s

    return part


def _taken(parts: Mapping[str, Part], seconds: float) -> dict[str, list[float]]:
    """Processor seconds of each part in each turn; every part comes first after steps in turn."""
    names = list(parts)
    found: dict[str, list[float]] = {name: [] for name in names}
    parts["steps"]()
    end_s = time.monotonic() + seconds
    others = names[1:]
    while time.monotonic() < end_s:
        for name in ("steps", *others):
            found[name].append(parts[name]())
        others = [*others[1:], others[0]]
    return found


def _means(seconds: np.ndarray, turns: int) -> np.ndarray:
    count = len(seconds) // turns
    means: np.ndarray = seconds[: count * turns].reshape(count, turns).mean(axis=1)
    return means


def _row(name: str, taken: list[float], means: Mapping[str, np.ndarray]) -> dict[str, Any]:
    part = means[name]
    return {
        "part": name,
        "ms": 1e3 * statistics.fmean(taken),
        "means": len(part),
        "varies by, %": 100 * float(part.std(ddof=1)),
        "steps over it vary by, %": 100 * float((means["steps"] - part).std(ddof=1)),
        "messages over it vary by, %": 100 * float((means[MESSAGE] - part).std(ddof=1)),
    }


if __name__ == "__main__":
    main()
