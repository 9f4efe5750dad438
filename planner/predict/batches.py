"""Batches: fixed, growing in a run (DLion), following streams (ScaDLES), parts of a global one."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from backends.strategies import sample_streams
from backends.strategies.batching import GROWTH, GlobalBatch
from backends.strategies.strategy import Strategy
from backends.training.run_settings import RunSettings
from planner.arrays import Floats
from planner.predict.global_batch import BatchShares
from planner.predict.sample_efficiency import Learning, images_factor

#: Images of the data set where none is named: those of MNIST and Fashion-MNIST.
TRAINING_SAMPLES = 60_000
#: Rounds without growth after which a batch grows no more.
SETTLED = GROWTH.warmup_every + GROWTH.speedup_every
#: Rounds in which the images of a run and the batches that they allow settle.
_SETTLING = 50


class BatchSizes(NamedTuple):
    """Batches and steps of a run by its number of members, (N + 1,) each.

    images: mean images of a member's step.
    steps: the steps that the run makes, as a share of those that were asked for.
    """

    images: Floats
    steps: Floats


class RunLength(NamedTuple):
    """What decides on the number and the batch sizes of a run's steps.

    steps: in all.
    arriving: mean images of a batch that follows streams; None where none does.
    """

    steps: int
    learning: Learning = Learning(TRAINING_SAMPLES)
    arriving: float | None = None


def of_run(strategy: Strategy, devices: int, usual: int, run: RunLength) -> BatchSizes:
    """Batches of runs of up to ``devices`` members. usual: images of a fixed batch, and of one."""
    images, share = np.full(devices + 1, float(usual)), np.ones(devices + 1)
    for n in range(2, devices + 1):
        if run.learning.sample_efficiency is None:
            images[n] = _mean_of(strategy, n, usual, run, rounds=run.steps / n)
        else:
            of_small_steps = run.steps * usual / run.learning.sample_efficiency
            images[n], needed = _settled(strategy, n, usual, of_small_steps, run)
            share[n] = needed / images[n] / run.steps
    return BatchSizes(images, share)


def _settled(strategy: Strategy, n: int, usual: int, of_small_steps: float, run: RunLength) -> tuple[float, float]:
    """Mean images of a member's step, and images of a run of n members.

    A batch that grows needs more images the more it grows, and grows the more images it takes.
    of_small_steps: images that would do if steps were as small as those of one device alone.
    """
    mean = float(usual)
    for _ in range(_SETTLING):
        needed = of_small_steps * images_factor(n * mean / usual, usual, run.learning.critical_batch)
        before, mean = mean, _mean_of(strategy, n, usual, run, images=needed)
        if abs(mean - before) <= 1e-3 * before:
            break
    return mean, needed


def _mean_of(
    strategy: Strategy, n: int, usual: int, run: RunLength, rounds: float = math.inf, images: float = math.inf
) -> float:
    if run.arriving is not None:
        return run.arriving
    return mean_batch(strategy, n, usual, run.learning.training_samples, rounds, images)


def of_global(size: int, devices: int, usual: int, run: RunLength) -> BatchSizes:
    """Batches of runs of up to ``devices`` members that share a global batch.

    The steps asked for are those of the usual batch: however many members there are, the run takes
    as many images, in as many rounds.
    """
    members = np.maximum(1, np.arange(devices + 1))
    factor, learning = 1.0, run.learning
    if learning.sample_efficiency is not None:
        factor = images_factor(size / usual, usual, learning.critical_batch) / learning.sample_efficiency
    return BatchSizes(size / members, factor * usual * members / size)


def notes(settings: RunSettings, run: RunLength) -> list[str]:
    """Notes for the operator on batches that are not fixed; of streams others tell."""
    strategy = settings.strategy
    if strategy.batching == "dynamic":
        return [f"batch sizes grow as they do on {run.learning.training_samples:,} training samples"]
    if strategy.batching == "stream" and settings.stream is None:
        return [f"batch sizes follow streams of images whose rates are drawn with --seed {settings.rates_seed}"]
    return []


def notes_scaled(strategy: Strategy) -> list[str]:
    """Notes on a prediction that was scaled from a run of another number of steps."""
    predicted = "predicted with the batch sizes of the planned number of steps"
    return [f"{predicted}; `planner recommend --steps` predicts another"] * (strategy.batching == "dynamic")


def mean_batch(
    strategy: Strategy, n: int, usual: int, training_samples: int, rounds: float = math.inf, images: float = math.inf
) -> float:
    """Mean images of a step of n members, over ``rounds`` or until they have taken ``images``."""
    if strategy.batching == "dynamic":
        return _grown(GlobalBatch(n * usual, training_samples), rounds, images) / n
    return float(usual)


def drawn(names: Sequence[str], seed: int) -> Floats:
    """(N,) images of a device's step, where batches follow streams that a run does not have."""
    return np.array([float(sample_streams.drawn_batch(name, seed)) for name in names])


def _grown(control: GlobalBatch, rounds: float, images: float) -> float:
    """Mean global batch of a run; its last round may be a part of one."""
    made = taken = 0.0
    unchanged = 0
    while True:
        left = min(rounds - made, (images - taken) / control.size)
        part = left if unchanged > SETTLED else min(1.0, left)
        made, taken = made + part, taken + part * control.size
        if part == left:
            return taken / made
        unchanged = 0 if control.advance() else unchanged + 1


class Batches(NamedTuple):
    """The batches of N devices.

    usual: images of a worker's step, of which all others are told.
    sizes: by the number of members, where they grow.
    shares: of a global batch instead; None without one.
    arriving: (N,) images of a step where batches follow streams, else None.
    """

    usual: int
    sizes: BatchSizes
    shares: BatchShares | None = None
    arriving: Floats | None = None
