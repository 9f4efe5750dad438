"""How many images the members of a run take a step: as ever, more and more (DLion), or as they come in (ScaDLES)."""

import math
from typing import NamedTuple

import numpy as np

from backends.strategies import streams
from backends.strategies.batching import GROWTH, GlobalBatch
from backends.strategies.strategy import Strategy
from backends.training.batch_size import StreamBatches
from planner.arrays import Floats
from planner.predict.sample_efficiency import images_factor

#: Of data that nobody has named, and by which global batches grow: as many as MNIST and Fashion-MNIST have.
TRAINING_SAMPLES = 60_000
#: Rates of streams are drawn as ``planner train`` draws them unless it is told another seed.
SEED = 0
#: Rounds without growth after which there will be none.
SETTLED = GROWTH.warmup_every + GROWTH.speedup_every


class BatchSizes(NamedTuple):
    """(N + 1,) each, by the number of members: mean images of a member's step in a run; and its steps, as a share of
    those that were asked for."""

    images: Floats
    steps: Floats


class RunLength(NamedTuple):
    """What of a run decides how many images a step has: its ``steps`` in all, the first ones' batches if None.

    training_samples: of its data; worth: if given, steps are those of one device alone, and the run makes as many of
    its own as teach as much: it takes 1 / worth of the images of as many synchronous workers with fixed batches, who
    take ``worth.more_images`` with this ``critical_batch``.
    """

    steps: int | None = None
    training_samples: int = TRAINING_SAMPLES
    worth: float | None = None
    critical_batch: float | None = None


ANY = RunLength()


def of_run(strategy: Strategy, devices: int, usual: int, run: RunLength) -> BatchSizes:
    """Batches of runs of up to so many members, ``usual`` images each where nothing else is said.

    One device alone exchanges nothing, and makes the steps that were asked for.
    """
    images, share = np.full(devices + 1, float(usual)), np.ones(devices + 1)
    for n in range(2, devices + 1):
        if run.worth is None or run.steps is None:
            rounds = 1.0 if run.steps is None else run.steps / n
            images[n] = mean_batch(strategy, n, usual, run.training_samples, rounds=rounds)
        else:
            wanted = run.steps * usual * images_factor(n, usual, run.critical_batch) / run.worth
            images[n] = mean_batch(strategy, n, usual, run.training_samples, images=wanted)
            share[n] = wanted / images[n] / run.steps
    return BatchSizes(images, share)


def notes(strategy: Strategy, run: RunLength) -> list[str]:
    """What the operator must know of them."""
    batching = strategy.batching
    if batching == "dynamic":
        return [f"batches grow as they do with {run.training_samples:,} training images"]
    return [f"batches are what streams bring with --seed {SEED}"] if batching == "stream" else []


def notes_scaled(strategy: Strategy) -> list[str]:
    """What the operator must know of a prediction that was made for a run of other steps, and scaled."""
    if strategy.batching != "dynamic":
        return []
    return ["predicted with the batches of a run of the planned steps; `recommend --steps` counts those of this one"]


def mean_batch(
    strategy: Strategy, n: int, usual: int, training_samples: int, rounds: float = math.inf, images: float = math.inf
) -> float:
    """Mean images of a step of n members, over so many rounds, or until they have taken so many images."""
    batching = strategy.batching
    if batching == "stream":
        return float(np.mean(streamed(n)))
    if batching == "dynamic":
        return _grown(GlobalBatch(n * usual, training_samples), rounds, images) / n
    return float(usual)


def streamed(n: int) -> list[int]:
    """Images that come in a step to each of n members, in the order of their names."""
    return streams.batches(streams.draw_rates(StreamBatches.DISTRIBUTION, n, SEED))


def gradients_s(strategy: Strategy, usual: int, batches: BatchSizes, gradient_s: Floats, image_s: Floats) -> Floats:
    """(n,) seconds of a gradient of the members of a run, by rank: of batches as they are, dealt by speed so that all
    end at once (DLion), or as streams bring them. gradient_s: of ``usual`` images; image_s: what one more adds."""
    n, batching = gradient_s.size, strategy.batching
    if batching == "stream":
        found: Floats = np.maximum(0.0, gradient_s + (np.array(streamed(n)) - usual) * image_s)
        return found
    if batching == "dynamic":
        fixed_s = gradient_s - usual * image_s
        return np.full(n, (n * batches.images[n] + (fixed_s / image_s).sum()) / (1 / image_s).sum())
    return gradient_s


def _grown(control: GlobalBatch, rounds: float, images: float) -> float:
    """Mean global batch of a run that ends within a round."""
    made = taken = 0.0
    unchanged = 0
    while True:
        left = min(rounds - made, (images - taken) / control.size)
        part = left if unchanged > SETTLED else min(1.0, left)
        made, taken = made + part, taken + part * control.size
        if part == left:
            return taken / made
        unchanged = 0 if control.advance() else unchanged + 1
