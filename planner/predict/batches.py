"""Batches: fixed, grown over a run (DLion), following streams (ScaDLES), or shares of a global one.

A global batch is divided so that the slowest member of a step takes least: minimise
max_i t_i(b_i) with sum b_i = B, where t_i is the measured curve of a device. (Eq. 5 of DLion does
so for lines.) A bisection over the possible times finds the least within which the members together
can compute B samples. Samples are whole numbers, exactly.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from backends.strategies import sample_streams
from backends.strategies.batching import GROWTH, GlobalBatch
from backends.strategies.strategy import Strategy
from backends.training.run_settings import RunSettings
from planner.arrays import Bools, Floats, Ints
from planner.predict.contention import KernelContention
from planner.predict.gradient_times import GradientTimes, gradient_times
from planner.predict.memory import StepHeadroom
from planner.predict.messages import encode_s
from planner.predict.sample_efficiency import Learning, images_factor
from planner.profile.file import Profile
from profilers.records.steps import StepProfile
from profilers.stats import mean

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


#: Of a single sample batch normalisation cannot learn.
LEAST = 2


def divide(times_s: Floats, least: Ints, most: Ints, members: Bools, size: int) -> Ints:
    """(C, N) samples of each member of C clusters, 0 for no member.

    times_s: (N, S), seconds of each device for the sample count of the column, never falling.
    least, most: (N,), fewest and most samples of each device; most is below S.
    members: (C, N); with the fewest samples of all they come to ``size`` at most, with the most to
        no less (see ``possible``).
    """
    values = np.unique(np.concatenate([times_s[i, low : high + 1] for i, (low, high) in _bounds(least, most)]))
    counts = np.stack(
        [np.searchsorted(times_s[i, : high + 1], values, side="right") - 1 for i, (_, high) in _bounds(least, most)],
        axis=1,
    )
    counts = np.maximum(counts, least)  # (V, N) samples within each of V times
    at = _first_enough(counts, members, size)
    within = np.where(members, counts[at], 0)
    before = np.where(members, np.where((at > 0)[:, None], counts[at - 1], least), 0)
    return before + _shared(size - before.sum(axis=1), within - before)


def _bounds(least: Ints, most: Ints) -> list[tuple[int, tuple[int, int]]]:
    return list(enumerate(zip(least.tolist(), most.tolist(), strict=True)))


def _first_enough(counts: Ints, members: Bools, size: int) -> Ints:
    """(C,) index of the least time within which the members can compute ``size`` samples."""
    low, high = np.zeros(len(members), np.int64), np.full(len(members), len(counts) - 1, np.int64)
    while (low < high).any():
        middle = (low + high) // 2
        enough = (counts[middle] * members).sum(axis=1) >= size
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    return high


def _shared(rest: Ints, headroom: Ints) -> Ints:
    """(C, N): ``rest``, (C,), in proportion to the headroom of each, (C, N), in whole numbers."""
    total = np.maximum(1, headroom.sum(axis=1))[:, None]
    part = rest[:, None] * headroom // total
    # What the rounding left, one each: whoever has room has some left, unless there is no rest.
    left = (rest - part.sum(axis=1))[:, None]
    has_room = headroom > part
    return np.asarray(part + (has_room & (np.cumsum(has_room, axis=1) <= left)))


class BatchShares(NamedTuple):
    """What N devices can take of a global batch of ``size`` samples.

    gradient_s: (N, S), seconds of a gradient for the sample count of the column.
    besides_s: (N,), seconds of a step that do not depend on the samples.
    least, most: (N,), as in ``divide``.
    """

    size: int
    gradient_s: Floats
    besides_s: Floats
    least: Ints
    most: Ints

    def possible(self, members: Bools) -> Bools:
        """(C,) whether the members, (C, N), can compute the batch together."""
        least, most = ((members * bound).sum(axis=1) for bound in (self.least, self.most))
        return np.asarray((least <= self.size) & (self.size <= most))

    def batches(self, members: Bools, contention: KernelContention) -> Ints:
        """(C, N) samples of each member of clusters that can compute the batch; 0 for no member.

        A device counts as two, one of which is a member: it alone on its kernel, or beside others.
        """
        rising_s, beside = np.maximum.accumulate(self.gradient_s, axis=1), contention.of(members) != 1
        times_s = np.concatenate([rising_s, rising_s * contention.factor[:, None]])
        times_s += np.tile(self.besides_s, 2)[:, None]
        either = np.concatenate([members & ~beside, members & beside], axis=1)
        divided = divide(times_s, np.tile(self.least, 2), np.tile(self.most, 2), either, self.size)
        return np.asarray(divided[:, : self.least.size] + divided[:, self.least.size :])

    def gradients(self, batches: Ints) -> Floats:
        """(C, N) seconds of the gradients of (C, N) samples."""
        return np.asarray(self.gradient_s[np.arange(len(self.gradient_s)), batches])

    def even(self) -> Ints:
        """(N,) samples of each device if all were members and had as many, within its bounds."""
        return np.clip(round(self.size / len(self.least)), self.least, self.most)


def bounds(times: GradientTimes, headroom: StepHeadroom) -> tuple[int, int]:
    """The fewest and the most samples of a device; the most is below the fewest where none fit."""
    fewest, most = times.reach
    return max(fewest, min(LEAST, times.sizes[0])), int(min(most, headroom.largest()))


def too_small(
    profile: Profile, steps: Mapping[str, StepProfile], headroom: Mapping[str, StepHeadroom]
) -> dict[str, str]:
    """The reason by device whose memory is too small for the fewest samples that it can have."""
    reasons = {}
    for name, step in steps.items():
        times = gradient_times(profile.devices[name], step)
        shortage = headroom[name].shortage(bounds(times, headroom[name])[0])
        if shortage is not None:
            reasons[name] = f"{step.model}: {shortage.text}"
    return reasons


def shares_of_devices(
    profile: Profile,
    steps: Mapping[str, StepProfile],
    headroom: Mapping[str, StepHeadroom],
    size: int,
    strategy: Strategy,
) -> BatchShares:
    """The shares of the devices in ``steps``, in that order; none of them is ``too_small``."""
    curves = {name: gradient_times(profile.devices[name], step) for name, step in steps.items()}
    limits = [bounds(curves[name], headroom[name]) for name in steps]
    least, most = np.array(limits).T
    most = np.maximum(least, np.minimum(most, size))
    seconds = np.full((len(steps), int(most.max()) + 1), np.inf)
    for i, times in enumerate(curves.values()):
        seconds[i, : least[i]] = 0.0
        for batch in range(least[i], most[i] + 1):
            seconds[i, batch] = times.at(batch).seconds
    besides_s = [_copy_s(step) + encode_s(strategy, step) for step in steps.values()]
    return BatchShares(size, seconds, np.array(besides_s), least, most)


def _copy_s(step: StepProfile) -> float:
    return mean(step.copy_s.values) if step.copy_s.values else 0.0


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
