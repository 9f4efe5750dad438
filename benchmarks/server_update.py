"""What an update costs the parameter server, beside reading and writing the model's bytes once.

    python benchmarks/server_update.py [--json]

Both are timed by turns in one run, so that the machine's drift falls out of their ratio. Target: at most 2.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from backends import optimise  # noqa: E402
from backends.base import Optimiser  # noqa: E402

SIZES_MB = (1, 25, 100)
TARGET = 2.0
SECONDS = 1.5
REPEATS = 15


def seconds(work: Callable[[], Any], calls: int) -> float:
    """Mean seconds of a call."""
    began = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - began) / calls


def ratios(size_mb: int, momentum: float, decay: float) -> Iterator[float]:
    """Time of an update over that of a copy of the weights, pair by pair."""
    random = np.random.default_rng(0)
    weights, velocity, gradients = random.normal(size=(3, size_mb * 250_000)).astype(np.float32) * 1e-3
    target = np.empty_like(weights)
    optimiser = Optimiser(0.01, momentum, decay)

    def update() -> None:
        optimise.apply(weights, velocity, gradients, optimiser, 1e-6)

    def copy() -> None:
        np.copyto(target, weights)

    update(), copy()
    calls = max(1, int(SECONDS / REPEATS / (seconds(update, 3) + seconds(copy, 3))))
    for _ in range(REPEATS):
        yield seconds(update, calls) / seconds(copy, calls)


def measure() -> list[dict[str, Any]]:
    rows = []
    for size_mb in SIZES_MB:
        for momentum, decay in ((0.0, 0.0), (0.9, 0.0), (0.9, 5e-4)):
            low, middle, high = statistics.quantiles(ratios(size_mb, momentum, decay), n=4)
            rows.append(
                {"model_mb": size_mb, "momentum": momentum, "weight_decay": decay,
                 "ratio": middle, "quartiles": [low, high], "target": TARGET}
            )  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    rows = measure()
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    print("model  momentum  decay   update / copy of the weights (quartiles)")
    for row in rows:
        print(
            f"{row['model_mb']:>3} MB  {row['momentum']:8g}  {row['weight_decay']:<6g}  "
            f"{row['ratio']:.2f}  ({row['quartiles'][0]:.2f} to {row['quartiles'][1]:.2f})"
            f"{'' if row['ratio'] <= TARGET else '  above ' + format(TARGET, 'g')}"
        )


if __name__ == "__main__":
    main()
