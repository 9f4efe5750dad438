"""What an update costs the parameter server, beside reading and writing the model's bytes once.

    python benchmarks/server_update.py [--json]

Both are timed by turns in one run, so that the machine's drift falls out of their ratio. The server looks whether the
gradients are finite and applies them. What it reads and writes is the model: its weights, and with momentum as
many bytes again. Target: at most twice a copy of that. The ratio to a copy of the weights alone is printed beside it.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from backends import optimise  # noqa: E402

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


def ratios(size_mb: int, momentum: float) -> Iterator[tuple[float, float]]:
    """Time of an update over that of a copy of all it changes, and of the weights alone, taken in turn."""
    random = np.random.default_rng(0)
    weights, velocity, gradients = random.normal(size=(3, size_mb * 250_000)).astype(np.float32) * 1e-6
    targets = np.empty_like(weights), np.empty_like(velocity)

    def update() -> None:
        assert optimise.finite(gradients)
        optimise.apply(weights, velocity, gradients, momentum)

    def copy_weights() -> None:
        np.copyto(targets[0], weights)

    def copy_changed() -> None:
        copy_weights()
        if momentum:
            np.copyto(targets[1], velocity)

    works = (update, copy_weights, copy_changed)
    calls = max(1, int(SECONDS / REPEATS / sum(seconds(work, 3) for work in works)))
    for _ in range(REPEATS):
        update_s, weights_s, changed_s = (seconds(work, calls) for work in works)
        yield update_s / changed_s, update_s / weights_s


def spread(values: Sequence[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(values, n=4)
    return {"median": middle, "low_quartile": low, "high_quartile": high}


def measure() -> list[dict[str, Any]]:
    rows = []
    for size_mb in SIZES_MB:
        for momentum in (0.0, 0.9):
            to_changed, to_weights = zip(*ratios(size_mb, momentum), strict=True)
            case = {"model_mb": size_mb, "momentum": momentum, "target": TARGET}
            rows.append({**case, "to_changed": spread(to_changed), "to_weights": spread(to_weights)})
    return rows


def shown(ratio: dict[str, float]) -> str:
    return "{median:5.2f} ({low_quartile:.2f} to {high_quartile:.2f})".format(**ratio)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    rows = measure()
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    print(" model  momentum  update / copy of what it changes   update / copy of the weights")
    for row in rows:
        print(
            f"{row['model_mb']:>3} MB  {row['momentum']:8g}  {shown(row['to_changed']):31}   {shown(row['to_weights'])}"
        )
    missed = sum(row["to_changed"]["median"] > TARGET for row in rows)
    print(f"target: at most {TARGET:g} times a copy of what it changes; missed in {missed} of {len(rows)} cases")


if __name__ == "__main__":
    main()
