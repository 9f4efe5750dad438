"""Strategies among peers are compared as workers grow in number, without network and clock.

    python benchmarks/many_workers.py [--workers 8 16 32] [--steps 150] [--rate 0.03] [--data
    FOLDER] [--json]

Every worker is a thread with a replica of its own; exchanges are the product's, and hand over what
they would send. All strategies have the same first weights, the same images in the same order,
dealt out as a run does it, and the momentum that a run has. A step has as many images however many
share them, as with Yeo et al. (2021), figure 8, who find crossover above SGP where workers are
many, and the hierarchical form, here of groups of four, as good as all-reduce. Accuracies are those
of every worker's own weights on the first thousand test images, their mean and their least, over
the seeds; differences are those of equal seeds.
"""

import statistics
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from reporting import Spread, parser, show

from backends.data import dataset
from backends.data.loader import ArraySamples, BatchLoader
from backends.frameworks.base import framework
from backends.frameworks.optimizer import GradientSettings, OptimizerSettings
from backends.jobs.job import ACCURACY
from backends.network.mailbox import Envelope
from backends.optimizers.sgd import Momentum
from backends.peers.exchanges.base import Exchange, ExchangeParts
from backends.peers.exchanges.registry import exchange
from backends.protocol.frames import PeerMessage
from backends.strategies.message import Message
from backends.strategies.strategy import Strategy
from backends.training import step
from planner.train import orders

HERE = Path(__file__).parent
MODEL = f"{HERE / 'racing' / 'small_cipher.py'}:small_cipher"
EXAMPLES = HERE.parent / "examples" / "fashion-mnist"
STRATEGIES = ("allreduce", "crossover", "sgp", "crossover-hierarchical")
#: Of which the difference is told.
PAIRS = (("crossover", "sgp"), ("crossover-hierarchical", "allreduce"))
GROUP = 4
TEST_IMAGES = 1000
#: Who waits longer for a message waits for a worker that has failed.
PATIENCE_S = 120.0


class Accuracy(NamedTuple):
    """Over the workers of one run."""

    mean: float
    least: float


class Post:
    """What these exchanges use of links.Links: what is sent lies with the peer at once."""

    def __init__(self, name: str, everyone: dict[str, "Post"]) -> None:
        self.name = name
        self._everyone = everyone
        self._parcels: list[Envelope] = []
        self._changed = threading.Condition()

    def send(self, peer: str, step: int, message: Message, **meta: Any) -> None:
        """A copy, so that there is nothing to flush."""
        copied = message._replace(arrays=tuple(array.copy() for array in message.arrays))
        head = PeerMessage(step=step, epoch=0, message=message.head, **{"kind": "", **meta})
        self._everyone[peer].put(Envelope(self.name, head, copied))

    def put(self, parcel: Envelope) -> None:
        with self._changed:
            self._parcels.append(parcel)
            self._changed.notify()

    def flush(self) -> None:
        pass

    def take(self, wanted: Callable[[Envelope], bool], count: int) -> list[Envelope]:
        with self._changed:
            if not self._changed.wait_for(lambda: sum(map(wanted, self._parcels)) >= count, PATIENCE_S):
                raise TimeoutError(f"{self.name} waits in vain")
            taken = list(filter(wanted, self._parcels))
            self._parcels = [parcel for parcel in self._parcels if not wanted(parcel)]
        return sorted(taken, key=lambda parcel: parcel.order)

    def next(self, peer: str, step: int, kind: str) -> Envelope:
        return self.take(lambda p: (p.sender, p.head.step, p.head.kind) == (peer, step, kind), 1)[0]


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--workers", type=int, nargs="+", default=[8, 16, 32])
    made.add_argument("--steps", type=int, default=150, help="of each worker")
    made.add_argument("--rate", type=float, default=0.03, help="learning rate")
    made.add_argument("--images", type=int, default=256, help="of a step of all workers together")
    made.add_argument("--seeds", type=int, default=3)
    made.add_argument("--data", type=Path, default=EXAMPLES, help="a folder of images")
    options = made.parse_args()
    images = dataset.load(str(options.data))
    rows = []
    for n in options.workers:
        found = {name: [_run(name, n, seed, images, options) for seed in range(options.seeds)] for name in STRATEGIES}
        rows += [_row(n, name, runs) for name, runs in found.items()]
        rows += [_row(n, f"{one} - {other}", _differences(found[one], found[other])) for one, other in PAIRS]
    title = f"Accuracy after {options.steps} steps of {options.images} images at a rate of {options.rate:g}"
    show(title, rows, options.json)


def _run(name: str, n: int, seed: int, images: dataset.Dataset, options: Any) -> Accuracy:
    batch = options.images // n
    groups = f":topology=groups:count={-(-n // GROUP)}" if name == "crossover-hierarchical" else ""
    strategy = Strategy.from_text(name + groups)
    momentum = orders.momentum(orders.Options(str(options.data)), n, strategy.sync)
    optimizer = OptimizerSettings(options.rate, momentum)

    def trained(own: Exchange, batches: BatchLoader) -> float:
        """A worker's accuracy at its end."""
        replica = own.parts.replica
        for number in range(options.steps):
            step.step(replica, batches, GradientSettings(optimizer.rate))
            own.step(number, batch, optimizer)
            replica.load()
        return float(step.evaluate(replica, ArraySamples(*test)).metrics[ACCURACY])

    test = images.test_images[:TEST_IMAGES], images.test_labels[:TEST_IMAGES]
    batches = []
    for rank, own in enumerate(dataset.shards(len(images.train_images), (1.0,) * n, seed)):
        part = images.train_images[own], images.train_labels[own]
        batches.append(BatchLoader(ArraySamples(*part), batch, seed * 1009 + rank))  # the seeds of a run
    with ThreadPoolExecutor(n) as threads:
        found = list(threads.map(trained, _exchanges(strategy, n, seed, images, batch), batches))
    return Accuracy(statistics.mean(found), min(found))


def _exchanges(strategy: Strategy, n: int, seed: int, images: dataset.Dataset, batch: int) -> list[Exchange]:
    """Of every worker, by rank; each with a replica that computes on one thread."""
    posts: dict[str, Any] = {}
    for rank in range(n):
        name = f"worker {rank:03}"
        posts[name] = Post(name, posts)
    made = []
    for post in posts.values():
        replica = framework("torch").build(MODEL, images.input_shape, images.classes, seed, 1)
        means = ExchangeParts(
            replica, post, strategy.topology.build(seed), strategy, Momentum(replica.variables), batch
        )
        made.append(exchange(means))
        made[-1].begin(tuple(posts))
    return made


def _differences(one: list[Accuracy], other: list[Accuracy]) -> list[Accuracy]:
    """Seed by seed."""
    return [Accuracy(a.mean - b.mean, a.least - b.least) for a, b in zip(one, other, strict=True)]


def _row(n: int, what: str, runs: list[Accuracy]) -> dict[str, Any]:
    means, least = (Spread.of(values) for values in zip(*runs, strict=True))
    return {"workers": n, "strategy": what, "mean of workers": means, "least of workers": least}


if __name__ == "__main__":
    main()
