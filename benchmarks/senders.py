"""What it costs to choose what of a gradient is sent, beside adding it to the weights once.

    python benchmarks/senders.py [--json]

Every kind of sender, at its defaults and in its steady state, on Gaussian gradients of layers that differ in scale. The
ratio is to one pass of weights -= gradients, both taken by turns in one run, so that the machine's drift falls out.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from reporting import Spread, parser, show

from backends.base import Variable
from backends.strategies.registry import SENDERS, sender

SIZES = (250_000, 2_500_000, 25_600_000)
LAYERS = 20
WARM_UP = 20
REPEATS = 15


def main() -> None:
    options = parser(__doc__).parse_args()
    rows = [_row(size, name) for size in SIZES for name in SENDERS]
    show("Choosing what is sent over one update of the weights", rows, options.json)


def _row(size: int, name: str) -> dict[str, Any]:
    times = list(_times(size, name))
    return {
        "elements": size,
        "sender": name,
        "send / update": Spread.of(sent_s / update_s for sent_s, update_s in times),
        "send ms": Spread.of(1000 * sent_s for sent_s, _ in times),
    }


def _times(size: int, name: str) -> Iterator[tuple[float, float]]:
    """Seconds of a message and of an update, taken in turn."""
    each = size // LAYERS
    variables = [Variable(str(i), (each,), i * each, each) for i in range(LAYERS)]
    random = np.random.default_rng(0)
    scales = np.repeat(np.geomspace(1, 100, LAYERS), each).astype(np.float32)
    gradients = [random.standard_normal(each * LAYERS, np.float32) * scales for _ in range(3)]
    weights = 300 * scales
    made = sender(name, variables)
    made.look(weights)
    for step in range(WARM_UP):
        made.send(gradients[step % 3])
    for step in range(REPEATS):
        values = gradients[step % 3]
        yield _seconds(lambda values=values: made.send(values)), _seconds(lambda values=values: np.add(weights, values))


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
