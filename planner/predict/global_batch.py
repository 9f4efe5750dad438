"""A global batch is divided so that the slowest member of a step takes least.

Minimise max_i t_i(b_i) with sum b_i = B, where t_i is the measured curve of a device. (Eq. 5 of
DLion does so for lines.) A bisection over the possible times finds the least within which the
members together can compute B samples. Samples are whole numbers, exactly.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from backends.strategies.batching import LEAST
from backends.strategies.strategy import Strategy
from planner.arrays import Bools, Floats, Ints
from planner.predict.contention import KernelContention
from planner.predict.gradient_times import GradientTimes, gradient_times
from planner.predict.memory import StepHeadroom
from planner.predict.messages import encode_s
from planner.predict.shortage import Shortage, shortage
from planner.profile.file import Profile
from profilers.records.steps import StepProfile
from profilers.stats import mean


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
) -> dict[str, Shortage]:
    """By device whose memory is too small for the fewest samples that it can have."""
    reasons = {}
    for name, step in steps.items():
        times = gradient_times(profile.devices[name], step)
        short = shortage(headroom[name], bounds(times, headroom[name])[0])
        if short is not None:
            reasons[name] = short
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
