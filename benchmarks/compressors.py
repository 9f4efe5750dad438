"""Compressing a gradient costs processor time, compared with an update or with a training step.

    python benchmarks/compressors.py [--json]
    python benchmarks/compressors.py --steps [--json]

Every kind of sender, at its defaults and in its steady state; those that adapt to a link also with
room for a tenth of the gradient, once for one link. Without --steps it is on Gaussian gradients of
layers that differ in scale, over one pass of weights -= gradients. With it, it is on gradients of
real models, over steps of these at batches of 16 and 32 on the same core; target: at most a tenth.
All are taken by turns in one run, so that the machine's drift falls out, and all on one thread, in
processor time.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from reporting import Spread, parser, show

from backends.frameworks.base import Replica, framework
from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import OptimizerSettings
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.registry import COMPRESSORS, CompressorSpec
from backends.strategies.message import DENSE, bytes_of

SIZES = (250_000, 2_500_000, 25_600_000)
#: Models of DLion's and Lee et al.'s sizes; images of 32 pixels where theirs have 256 and 224,
#: which makes steps short.
MODELS = (("cipher", (28, 28, 1), 10), ("mobilenet", (32, 32, 3), 1000), ("resnet50", (32, 32, 3), 1000))
BATCHES = (16, 32)
LAYERS = 20
WARM_UP = 20
REPEATS = 15
STEP_REPEATS = 7
RATE = 0.01
ROOM = 0.1


class Kind(NamedTuple):
    """One way to choose; budget_bytes: what its link takes."""

    label: str
    made: Compressor
    budget_bytes: float | None


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--steps", action="store_true", help="beside steps of training")
    options = made.parse_args()
    if options.steps:
        rows = [row for name, shape, classes in MODELS for row in _beside_steps(name, shape, classes)]
        show("Choosing what is sent over a step on one core; target: at most 0.1", rows, options.json)
        return
    rows = [row for size in SIZES for row in _beside_updates(size)]
    show("Choosing what is sent over one update of the weights", rows, options.json)


def _kinds(variables: tuple[Variable, ...], weights: np.ndarray) -> list[Kind]:
    room_bytes = ROOM * bytes_of(DENSE, weights.size, weights.size)
    kinds = []
    for name in COMPRESSORS:
        kinds.append(Kind(name, CompressorSpec(name).build(variables), None))
        if kinds[-1].made.by_link:
            kinds.append(Kind(f"{name}, fitted", CompressorSpec(name).build(variables), room_bytes))
    for kind in kinds:
        kind.made.bind_weights(weights)
    return kinds


def _beside_updates(size: int) -> Iterator[dict[str, Any]]:
    each = size // LAYERS
    variables = tuple(Variable(str(i), (each,), i * each, each) for i in range(LAYERS))
    random = np.random.default_rng(0)
    scales = np.repeat(np.geomspace(1, 100, LAYERS), each).astype(np.float32)
    gradients = [random.standard_normal(each * LAYERS, np.float32) * scales for _ in range(3)]
    weights = 300 * scales
    for kind in _kinds(variables, weights):
        times = list(_times(kind, gradients, weights.copy()))
        yield {
            "elements": size,
            "sender": kind.label,
            "send / update": Spread.of(sent_s / update_s for sent_s, update_s in times),
            "send ms": Spread.of(1000 * sent_s for sent_s, _ in times),
        }


def _times(kind: Kind, gradients: list[np.ndarray], weights: np.ndarray) -> Iterator[tuple[float, float]]:
    """Seconds of a message and of an update, taken in turn."""
    for step in range(WARM_UP):
        kind.made.compress(gradients[step % 3], kind.budget_bytes)
    for step in range(REPEATS):
        values = gradients[step % 3]
        yield _send_s(kind, values), _seconds(lambda values=values: np.subtract(weights, values, out=weights))


def _beside_steps(name: str, shape: tuple[int, int, int], classes: int) -> Iterator[dict[str, Any]]:
    replica = framework("torch").build(name, shape, classes, 0, 1)
    kinds = _kinds(replica.variables, replica.weights)
    random = np.random.default_rng(0)
    steps_s: dict[int, list[float]] = {batch: [] for batch in BATCHES}
    sends_s: dict[str, list[float]] = {kind.label: [] for kind in kinds}
    for repeat in range(-2, STEP_REPEATS):
        for batch in BATCHES:
            images = random.integers(0, 256, (batch, *shape), np.uint8)
            labels = random.integers(0, classes, batch)
            steps_s[batch].append(_seconds(lambda images=images, labels=labels: _step(replica, images, labels)))
        for kind in kinds:
            sends_s[kind.label].append(_send_s(kind, replica.gradients))
        if repeat == -1:  # what came before warmed up
            for times in (*steps_s.values(), *sends_s.values()):
                times.clear()
    for kind in kinds:
        shares = {
            f"send / step of {batch}": Spread.of(np.divide(sends_s[kind.label], steps_s[batch])) for batch in BATCHES
        }
        yield {
            "model": name,
            "MB": replica.weights.nbytes / 1e6,
            "sender": kind.label,
            **shares,
            "send ms": Spread.of(1000 * np.array(sends_s[kind.label])),
        }


def _step(replica: Replica, images: np.ndarray, labels: np.ndarray) -> None:
    replica.gradient((images, labels), RATE)
    replica.update(OptimizerSettings(momentum=0.0))


def _send_s(kind: Kind, values: np.ndarray) -> float:
    return _seconds(lambda: kind.made.compress(values, kind.budget_bytes))


def _seconds(work: Callable[[], Any]) -> float:
    """Of the processor, so that whatever else runs takes no part."""
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
