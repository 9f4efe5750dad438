"""This measures the steps that workers with local steps need to a target, without a network.

    python benchmarks/local_updates.py --data /usr/share/datasets/fashion-mnist \\
        --each 25+25+25+25 --outer average --outer nesterov --rate 0.02 --rate 0.04 --out runs.jsonl

Every run is a process, whose workers make their local steps one after the other, by the program's
own rounds and outer steps, on shards of their own. It ends when the averaged model reaches the
target on `--test-images` of the test set. ``--each`` gives the local steps of every worker in a
round; one number is a worker alone. Every run is a JSON line with its curve: the accuracy after so
many steps of the worker with the most of them. Runs that are in the file already are not made
again.

With ``--cosine STEPS`` the rate falls to 0 along half a cosine over so many steps of a worker, and
the run ends there, whatever the target: what a run of that length comes to is then told by its last
evaluation, and not by how often it was evaluated.

With ``--compressor float16`` or another one, what a worker hands over goes through it first.

With ``--asynchronous`` nobody waits: workers push their changes in turn, each made from the weights
as they were after its own last push, as around a server with workers whose rounds take as long.
"""

import argparse
import concurrent.futures
import itertools
import json
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from racing.final_accuracy import thinned
from reporting import json_lines

from backends.data import dataset
from backends.data.loader import ArraySamples, BatchLoader
from backends.frameworks.base import Replica, framework
from backends.frameworks.optimizer import OptimizerSettings
from backends.jobs.job import ACCURACY
from backends.optimizers import registry
from backends.protocol.frames import LocalRound
from backends.strategies.compressors.base import Compressor
from backends.strategies.compressors.registry import CompressorSpec
from backends.strategies.local_updates import OuterSpec
from backends.strategies.message import add
from backends.training.local_round import LocalUpdates
from backends.training.lr_schedule import RateSchedule
from backends.training.step import evaluate

#: Applies a change to the weights.
Apply = Callable[[np.ndarray], None]
DEPTHWISE = Path(__file__).parent / "racing/depthwise.py"


class Case(NamedTuple):
    """One run.

    each: local steps of every worker in a round.
    cosine: steps of a worker over which the rate falls to 0; 0 for a constant rate.
    """

    each: tuple[int, ...]
    outer: str
    rate: float
    seed: int
    cosine: int = 0
    asynchronous: bool = False
    compressor: str = "dense"


class Setting(NamedTuple):
    """What all runs have in common."""

    model: str
    data: str
    batch: int
    momentum: float
    target: float
    test_images: int
    most_steps: int
    every: int


def main() -> None:
    options = _arguments()
    setting = Setting(
        options.model, options.data, options.batch, options.momentum, options.target, options.test_images,
        options.most_steps, options.every,
    )  # fmt: skip
    cases = [
        Case(tuple(map(int, each.split("+"))), outer, rate, seed, cosine, options.asynchronous, options.compressor)
        for seed in range(options.first_seed, options.first_seed + options.seeds)
        for each, outer, rate, cosine in itertools.product(options.each, options.outer, options.rate, options.cosine)
    ]
    done = {_key(run) for run in json_lines(options.out)}
    todo = [case for case in cases if json.dumps([setting, case]) not in done]
    spawned = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.processes, mp_context=spawned) as pool:
        for future in concurrent.futures.as_completed([pool.submit(run, setting, case) for case in todo]):
            found = future.result()
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
            print(json.dumps({**found["case"], "last": found["curve"][-1:]}), flush=True)


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--model", default=f"{DEPTHWISE}:depthwise")
    made.add_argument("--data", required=True, help="folder of images")
    made.add_argument("--batch", type=int, default=16)
    made.add_argument("--momentum", type=float, default=0.9, help="of the local steps")
    made.add_argument("--each", action="append", required=True, help="local steps by worker, as 25+25 or 50+31+31")
    made.add_argument("--outer", action="append", default=None, help="text of an outer step; average by default")
    made.add_argument("--rate", action="append", type=float, required=True, help="learning rate of local steps")
    made.add_argument("--cosine", action="append", type=int, default=None, help="length of a run with a falling rate")
    made.add_argument("--compressor", default="dense", help="of what a worker hands over")
    made.add_argument("--asynchronous", action="store_true", help="nobody waits; for --outer delayed-nesterov")
    made.add_argument("--seeds", type=int, default=1)
    made.add_argument("--first-seed", type=int, default=0)
    made.add_argument("--target", type=float, default=0.89)
    made.add_argument("--test-images", type=int, default=2000)
    made.add_argument("--most-steps", type=int, default=12_000, help="of a worker")
    made.add_argument("--every", type=int, default=100, help="steps of a worker between evaluations, at least a round")
    made.add_argument("--processes", type=int, default=2)
    made.add_argument("--out", type=Path, default=Path("local-updates.jsonl"))
    options = made.parse_args()
    options.outer, options.cosine = options.outer or ["average"], options.cosine or [0]
    return options


def _key(run: dict[str, Any]) -> str:
    return json.dumps([list(run["setting"].values()), list(run["case"].values())])


def run(setting: Setting, case: Case) -> dict[str, Any]:
    """Train to the target; the setting, the case, and (steps, accuracy) on the way."""
    whole = dataset.load(setting.data)
    few = thinned(whole, setting.test_images)
    test = ArraySamples(few.test_images, few.test_labels)
    members = _members(setting, case, whole)
    weights, state = members[0].replica.weights.copy(), members[0].replica.state.copy()
    outer = registry.build(OuterSpec.from_text(case.outer).kind, members[0].replica.variables)
    settings = OuterSpec.from_text(case.outer).settings(case.each)
    made, evaluated = 0, 0
    curve: list[tuple[int, float]] = []
    schedule = RateSchedule("cosine" if case.cosine else "constant", case.cosine)
    end = case.cosine or setting.most_steps
    exchange = _take_turns if case.asynchronous else _round

    def apply(change: np.ndarray) -> None:
        outer.apply(weights, change, settings)

    while made < end:
        rate = case.rate * schedule.factor(made)
        state = exchange(members, rate, setting.batch, weights, state, apply)
        if not np.isfinite(weights).all():
            break
        made += max(case.each)
        if made - evaluated >= setting.every or made >= end:
            evaluated, replica = made, members[0].replica
            replica.weights[:], replica.state[:] = weights, state
            curve.append((made, evaluate(replica, test).metrics[ACCURACY]))
            if curve[-1][1] >= setting.target and not case.cosine:
                break
    return {"setting": setting._asdict(), "case": case._asdict(), "curve": curve}


@dataclass
class Member:
    """A worker. start: the weights that it makes its next change from, where nobody waits."""

    replica: Replica
    local: LocalUpdates
    steps: int
    start: np.ndarray
    compressor: Compressor

    def change(self, rate: float, batch: int, weights: np.ndarray, state: np.ndarray) -> np.ndarray:
        """The change of its local steps."""
        self.replica.weights[:], self.replica.state[:] = weights, state
        self.local.make(LocalRound(self.steps), rate, batch)
        message = self.compressor.compress(self.replica.gradients)
        handed_over = np.zeros_like(self.replica.gradients)
        add(message, handed_over)
        return handed_over


def _members(setting: Setting, case: Case, whole: dataset.Dataset) -> list[Member]:
    shards = dataset.shards(len(whole.train_labels), [1.0] * len(case.each), case.seed)
    members = []
    for number, (positions, steps) in enumerate(zip(shards, case.each, strict=True)):
        images = ArraySamples(whole.train_images[positions], whole.train_labels[positions])
        torch.manual_seed(case.seed)  # by which a user's model draws its weights
        replica = framework("torch").build(setting.model, whole.train_images.shape[1:], seed=case.seed)
        loader = BatchLoader(images, setting.batch, 1009 * case.seed + number)
        inner = OptimizerSettings(case.rate, setting.momentum)
        local = LocalUpdates(replica, loader, inner, False)
        compressor = CompressorSpec.from_text(case.compressor).build(replica.variables)
        members.append(Member(replica, local, steps, replica.weights.copy(), compressor))
    return members


def _round(
    members: list[Member], rate: float, batch: int, weights: np.ndarray, state: np.ndarray, apply: Apply
) -> np.ndarray:
    """A round of all, whose mean change is applied; the mean state after it."""
    apply(_mean(members, [member.change(rate, batch, weights, state) for member in members]))
    return _mean(members, [member.replica.state for member in members])


def _take_turns(
    members: list[Member], rate: float, batch: int, weights: np.ndarray, state: np.ndarray, apply: Apply
) -> np.ndarray:
    """A change of each, one after the other, applied as it comes; the mean state after them."""
    for member in members:
        apply(member.change(rate, batch, member.start, state))
        member.start[:] = weights
    return _mean(members, [member.replica.state for member in members])


def _mean(members: list[Member], arrays: list[np.ndarray]) -> np.ndarray:
    """Weighed by steps."""
    steps = [member.steps for member in members]
    return np.average(arrays, axis=0, weights=steps).astype(np.float32)


if __name__ == "__main__":
    main()
