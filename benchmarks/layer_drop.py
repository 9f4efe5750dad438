"""Layer dropping saves a share of a dense step's bytes in each direction.

    python benchmarks/layer_drop.py [--model resnet] [--momentum 0.9] [--data FOLDER] [--json]

Four workers and a server run in one process without a network. A dropped layer accumulates and is
sent once it has accumulated enough; the server returns what any worker changed. Lee et al. (2020)
report 95 % less of each.
"""

import itertools
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from reporting import Spread, parser, show

from backends.data import dataset
from backends.data.loader import ArraySamples, BatchLoader
from backends.frameworks.base import framework, layout_of
from backends.frameworks.optimizer import OptimizerSettings
from backends.optimizers.sgd import Momentum
from backends.server.global_model import GlobalModel
from backends.strategies.compressors.registry import CompressorSpec
from backends.strategies.message import DENSE, bytes_of

WORKERS = 4
#: Where a threshold is computed anew.
PHASES = (0, 10, 100, 200)
STEPS = 300
EXAMPLES = Path(__file__).parent.parent / "examples" / "fashion-mnist"


class Sent(NamedTuple):
    """Shares of a dense step's bytes: of one worker's message, and of the server's answer to it."""

    up: float
    down: float


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--model", default="resnet", help="a known model")
    made.add_argument("--momentum", type=float, default=0.9)
    made.add_argument("--rate", type=float, default=0.01, help="learning rate")
    made.add_argument("--batch", type=int, default=4, help="images of each worker")
    made.add_argument("--data", type=Path, default=EXAMPLES, help="a folder of images")
    options = made.parse_args()
    steps = list(itertools.islice(_steps(options), STEPS))
    phases = zip(PHASES, (*PHASES[1:], STEPS), strict=True)
    rows = [_row(begin, end, steps[begin:end]) for begin, end in (*phases, (PHASES[1], STEPS))]
    title = f"{options.model}, momentum {options.momentum:g}: layer dropping's bytes over a dense step's"
    show(title, rows, options.json)


def _row(begin: int, end: int, steps: list[list[Sent]]) -> dict[str, Any]:
    row: dict[str, Any] = {"steps": f"{begin} to {end - 1}"}
    for name, shares in zip(("sent", "sent back"), zip(*itertools.chain(*steps), strict=True), strict=True):
        row |= {f"{name}, mean": statistics.fmean(shares), f"{name}, median": Spread.of(shares)}
    return row


def _steps(options: Any) -> Iterator[list[Sent]]:
    """Of every step what each worker sends and gets; all of them have the same weights."""
    images = dataset.load(str(options.data))
    replica = framework("torch").build(options.model, images.input_shape, images.classes, 0, 1)
    shards = dataset.shards(len(images.train_images), (1.0,) * WORKERS, 0)
    batches = [
        BatchLoader(ArraySamples(images.train_images[own], images.train_labels[own]), options.batch, 0)
        for own in shards
    ]
    senders = [CompressorSpec("layer-drop").build(replica.variables, options.momentum) for _ in batches]
    weights = replica.weights.copy()
    server = GlobalModel(layout_of(replica), weights, Momentum(replica.variables), replica.state.copy())
    whole = bytes_of(DENSE, weights.size, weights.size)
    while True:
        replica.weights[:] = weights
        replica.load()
        messages = []
        for own, drops in zip(batches, senders, strict=True):
            replica.gradient(next(own), rate=options.rate, weight_decay=0.0)
            replica.fetch()
            messages.append(drops.compress(replica.gradients))
        server.update(messages, [1.0 / WORKERS] * WORKERS, OptimizerSettings(momentum=0.0))
        yield [
            Sent(message.traffic_bytes / whole, server.pull(str(rank)).traffic_bytes / whole)
            for rank, message in enumerate(messages)
        ]


if __name__ == "__main__":
    main()
