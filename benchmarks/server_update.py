"""An update of the parameter server is timed beside reading and writing the model's bytes once.

    python benchmarks/server_update.py [--json]

Both are timed by turns in one run, so that the machine's drift falls out of their ratio. The server
looks whether the gradients are finite and applies them. What it reads and writes is the model: its
weights, and with momentum as many bytes again. Target: at most twice a copy of that. The ratio to a
copy of the weights alone is printed beside it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from reporting import Spread, mean_seconds, parser, show

from backends.frameworks.layout import Layout, Variable
from backends.frameworks.optimizer import MOMENTUM, OptimizerSettings
from backends.optimizers.sgd import Momentum
from backends.server.global_model import GlobalModel
from backends.strategies.message import dense

SIZES_MB = (1, 25, 100)
SECONDS = 1.5
REPEATS = 15


def main() -> None:
    options = parser(__doc__).parse_args()
    rows = [_row(size_mb, momentum) for size_mb in SIZES_MB for momentum in (0.0, 0.9)]
    show("A server's update over copies; target: at most 2 of what it changes", rows, options.json)


def _row(size_mb: int, momentum: float) -> dict[str, Any]:
    to_changed, to_weights = zip(*_ratios(size_mb, momentum), strict=True)
    return {
        "model MB": size_mb,
        "momentum": momentum,
        "update / copy of what it changes": Spread.of(to_changed),
        "update / copy of the weights": Spread.of(to_weights),
    }


def _ratios(size_mb: int, momentum: float) -> Iterator[tuple[float, float]]:
    """Time of an update over that of a copy of all it changes, and of the weights alone."""
    random = np.random.default_rng(0)
    weights, gradients = random.normal(size=(2, size_mb * 250_000)).astype(np.float32) * 1e-6
    made = Momentum((Variable("all", weights.shape, 0, weights.size),))
    velocity = made.slots[MOMENTUM]
    server = GlobalModel(Layout((), ()), weights, made, np.empty(0, np.float32))
    gradient, optimizer = dense(gradients), OptimizerSettings(momentum=momentum)
    targets = np.empty_like(weights), np.empty_like(velocity)

    def update() -> None:
        assert server.accepts(gradient)
        server.update([gradient], [1.0], optimizer)

    def copy_weights() -> None:
        np.copyto(targets[0], weights)

    def copy_changed() -> None:
        copy_weights()
        if momentum:
            np.copyto(targets[1], velocity)

    works = (update, copy_weights, copy_changed)
    calls = max(1, int(SECONDS / REPEATS / sum(mean_seconds(work, 3) for work in works)))
    for _ in range(REPEATS):
        update_s, weights_s, changed_s = (mean_seconds(work, calls) for work in works)
        yield update_s / changed_s, update_s / weights_s


if __name__ == "__main__":
    main()
