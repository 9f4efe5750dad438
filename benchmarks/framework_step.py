"""A replica's step is compared with a textbook step of the same model and framework.

    python benchmarks/framework_step.py [--framework tensorflow] [--models resnet,cipher] [--batch
    32] [--json]

A worker's step loads weights, computes gradients and fetches them; a step alone computes gradients
and updates with momentum, as the plain one does (``plain.py``). They take turns, so that the
machine's drift falls out of their ratio. Target: at most 1.05.
"""

from typing import Any

import plain
from reporting import Spread, mean_seconds, parser, show

from backends import models
from backends.data import dataset
from backends.frameworks import base
from backends.frameworks.optimizer import OptimizerSettings
from profilers.cpu_quota import usable_cores

MODELS = "cifar10,cipher,nin,resnet,mobilenet,squeezenet,alexnet"
WARM_UP = 3
REPEATS = 15
SECONDS = 12.0
STEPS = {"tensorflow": plain.tensorflow_step, "torch": plain.torch_step}


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--framework", choices=sorted(STEPS), default="tensorflow")
    command.add_argument("--models", default=MODELS, help="names, with commas")
    command.add_argument("--batch", type=int, default=32)
    options = command.parse_args()
    rows = [_row(options.framework, name, options.batch) for name in options.models.split(",")]
    show(f"A replica's step over a plain one, {options.framework}; target: at most 1.05", rows, options.json)


def _row(framework: str, name: str, batch: int) -> dict[str, Any]:
    description = models.model(name, (32, 32, 3), 10)
    backend = base.framework(framework)
    replica = backend.build(description, threads=base.usable_threads(usable_cores()))
    step = STEPS[framework](description)
    noise = dataset.synthetic(description.input_shape, description.classes, batch, 0)
    images, labels = noise.train_images, noise.train_labels

    def worker() -> None:
        replica.load()
        replica.gradient((images, labels), plain.RATE)
        replica.fetch()

    def alone() -> None:
        replica.gradient((images, labels), plain.RATE)
        replica.update(OptimizerSettings(momentum=plain.MOMENTUM))

    works = (lambda: step(images, labels), worker, alone)
    for work in works:
        mean_seconds(work, WARM_UP)
    calls = max(1, int(SECONDS / REPEATS / sum(mean_seconds(work, 1) for work in works)))
    turns = [[mean_seconds(work, calls) for work in works] for _ in range(REPEATS)]
    return {
        "model": name,
        "plain ms": Spread.of(1e3 * turn[0] for turn in turns),
        "worker's / plain": Spread.of(turn[1] / turn[0] for turn in turns),
        "alone / plain": Spread.of(turn[2] / turn[0] for turn in turns),
    }


if __name__ == "__main__":
    main()
