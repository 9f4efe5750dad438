"""This measures what adaptive compression sends, and the accuracy that is left, without a network.

    python benchmarks/adaptive_compression.py --data /usr/share/datasets/fashion-mnist \\
        --rate 0.02 --steps 2000 --out adaptive.jsonl

The table of ScaDLES (Tyagi and Swany) has, by compression ratio CR (the share that top-k sends) and
threshold delta, the CNC ratio (compressed steps over all), the floats sent and the accuracy. Here
they are those of both rules of ``adaptive``, beside dense gradients: ``accumulated`` weighs what
earlier steps have left as well, ``gradient`` the new gradient alone, as the paper prints it.

Every run is a process, whose workers compute a gradient each in every step, on shards of their own.
What they send is averaged and applied, as by a synchronous server. The momentum of compressors with
a residual is the workers' own, as in runs of the program. Every run is a JSON line: floats a
worker (indices not counted) and the curve of (step, accuracy). Runs that are in the file already
are not made again; the table is of all that are.
"""

import argparse
import itertools
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from racing.final_accuracy import thinned
from reporting import Spread, show
from trainings import Setting, make_missing

from backends.data import dataset
from backends.data.loader import ArraySamples, BatchLoader
from backends.frameworks.base import Replica, framework
from backends.frameworks.optimizer import GradientSettings
from backends.jobs.job import ACCURACY
from backends.optimizers import sgd
from backends.strategies.compressors.adaptive import RULES
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.registry import CompressorSpec
from backends.strategies.message import Message, add
from backends.training.step import evaluate, step

DENSE = "dense"
#: Those of the paper's table.
SHARES, DELTAS = (0.1, 0.01), (0.1, 0.2, 0.3, 0.4)


class Case(NamedTuple):
    """One run. share: CR. rule: of ``adaptive``, or DENSE, for which the share is 1 and delta 0."""

    rule: str
    share: float
    delta: float
    seed: int

    @property
    def compressor(self) -> str:
        """Its text."""
        return DENSE if self.rule == DENSE else f"adaptive:rule={self.rule},delta={self.delta:g},share={self.share:g}"


class Worker(NamedTuple):
    """What a worker has of its own besides the replica, which all use in turn."""

    loader: BatchLoader
    compressor: Compressor
    state: np.ndarray


def main() -> None:
    options = _arguments()
    setting = Setting(
        options.model, options.data, options.workers, options.batch, options.rate, options.momentum, options.steps,
        options.every, options.test_images,
    )  # fmt: skip
    grid = list(itertools.product(options.rule, options.share, options.delta))
    cases = [Case(*each, seed) for seed in range(options.seeds) for each in [(DENSE, 1.0, 0.0), *grid]]
    of_setting = make_missing(run, setting, cases, options.out, options.processes)
    title = f"{setting.model}, {setting.steps} steps of {setting.workers} workers"
    show(title, rows(of_setting), options.json)


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--model", default="cipher")
    made.add_argument("--data", required=True, help="folder of images")
    made.add_argument("--workers", type=int, default=4)
    made.add_argument("--batch", type=int, default=32, help="of each worker")
    made.add_argument("--rate", type=float, required=True, help="learning rate")
    made.add_argument("--momentum", type=float, default=0.9)
    made.add_argument("--steps", type=int, default=2000)
    made.add_argument("--every", type=int, default=200, help="steps between evaluations")
    made.add_argument("--share", action="append", type=float, help="compression ratios; 0.1 and 0.01 if not given")
    made.add_argument("--delta", action="append", type=float, help="thresholds; 0.1 to 0.4 if not given")
    made.add_argument("--rule", action="append", choices=RULES, help="both if not given")
    made.add_argument("--seeds", type=int, default=1)
    made.add_argument("--test-images", type=int, default=2000)
    made.add_argument("--processes", type=int, default=2)
    made.add_argument("--out", type=Path, default=Path("adaptive-compression.jsonl"))
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = made.parse_args()
    options.share, options.delta = options.share or SHARES, options.delta or DELTAS
    options.rule = options.rule or RULES
    return options


def rows(runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row a rule, ratio and threshold, over all seeds; dense gradients come first."""
    by_case: dict[tuple[bool, str, float, float], list[dict[str, Any]]] = {}
    for each in runs:
        case = Case(**each["case"])
        by_case.setdefault((case.rule != DENSE, case.rule, -case.share, case.delta), []).append(each)
    dense = statistics.mean(each["floats_sent"] for each in by_case[min(by_case)])
    return [
        {
            "rule": key[1],
            "CR": -key[2] if key[0] else None,
            "delta": key[3] if key[0] else None,
            "CNC ratio": statistics.mean(each["cnc_ratio"] for each in by_case[key]) if key[0] else None,
            "floats sent": statistics.mean(each["floats_sent"] for each in by_case[key]),
            "over dense": statistics.mean(each["floats_sent"] for each in by_case[key]) / dense,
            "accuracy": Spread.of(each["curve"][-1][1] for each in by_case[key]),
        }
        for key in sorted(by_case)
    ]


def run(setting: Setting, case: Case) -> dict[str, Any]:
    """Train for all steps, or until the weights are not finite."""
    whole = dataset.load(setting.data)
    few = thinned(whole, setting.test_images)
    test = ArraySamples(few.test_images, few.test_labels)
    torch.manual_seed(case.seed)  # by which a user's model draws its weights
    replica = framework("torch").build(setting.model, whole.train_images.shape[1:], whole.classes, case.seed, 1)
    workers = _workers(setting, case, whole, replica)
    weights, velocity = replica.weights.copy(), np.zeros_like(replica.weights)
    momentum = setting.momentum if case.rule == DENSE else 0.0
    floats, curve = 0, []
    for made in range(1, setting.steps + 1):
        total = np.zeros_like(weights)
        for worker in workers:
            message = _message(replica, worker, weights, setting.rate)
            floats += message.arrays[-1].size
            add(message, total)
        sgd.apply(weights, velocity, total / len(workers), momentum)
        if made % setting.every == 0 or made == setting.steps or not np.isfinite(weights).all():
            replica.state[:] = np.mean([worker.state for worker in workers], axis=0)
            replica.set_weights(weights)
            curve.append((made, evaluate(replica, test).metrics[ACCURACY]))
            if not np.isfinite(weights).all():
                break
    ratios = [worker.compressor.metrics().get("cnc_ratio", 0.0) for worker in workers]
    return {
        "setting": setting._asdict(), "case": case._asdict(), "parameters": int(weights.size),
        "cnc_ratio": statistics.mean(ratios), "floats_sent": floats / len(workers), "curve": curve,
    }  # fmt: skip


def _workers(setting: Setting, case: Case, whole: dataset.Dataset, replica: Replica) -> list[Worker]:
    spec = CompressorSpec.from_text(case.compressor)
    workers = []
    for number, positions in enumerate(dataset.shards(len(whole.train_labels), [1.0] * setting.workers, case.seed)):
        images = ArraySamples(whole.train_images[positions], whole.train_labels[positions])
        loader = BatchLoader(images, setting.batch, 1009 * case.seed + number)
        compressor = spec.build(replica.variables, setting.momentum if spec.keeps_residual else 0.0)
        workers.append(Worker(loader, compressor, replica.state.copy()))
    return workers


def _message(replica: Replica, worker: Worker, weights: np.ndarray, rate: float) -> Message:
    """What a worker sends of its gradient, times the rate; its state is that after the step."""
    replica.state[:] = worker.state
    replica.set_weights(weights)
    step(replica, worker.loader, GradientSettings(rate))
    worker.state[:] = replica.state
    return worker.compressor.compress(replica.gradients)


if __name__ == "__main__":
    main()
