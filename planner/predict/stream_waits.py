"""A step begins when the samples of its batch have arrived (ScaDLES, Tyagi and Swany, section 3).

A device at which p samples arrive in a second cannot make steps of b samples in less than b / p
seconds. What arrives while it computes and exchanges is kept, so that the wait overlaps with these:
in steady state a step of t seconds takes max(t, b / p), and the buffer grows by p less b a step.
Where workers wait for one another, the slowest stream holds all of them up.

A server is taken to be loaded as if its workers did not wait for samples.
"""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from backends import models
from backends.streams.buffer import TRUNCATE
from backends.streams.rate_shape import CONSTANT
from backends.streams.sample_codec import ArrayCodec, ArrayType
from backends.streams.spec import StreamSpec
from backends.training.run_settings import RunSettings
from planner.arrays import Bools, Floats
from planner.predict.gradient_times import gradient_times
from planner.profile.file import Profile
from profilers.records.steps import StepProfile

#: Rounding: rates and times that differ by less than this share are the same.
_STEADY = 1e-9


class StreamRates(NamedTuple):
    """The streams of N devices.

    rate: (N,) samples a second that a device can use, the mean over time.
    error: (N,) its relative standard error, where it was measured; else 0.
    sample_bytes: (N,) as they arrive, NaN where unknown.
    seed: of rates that are drawn.
    """

    spec: StreamSpec
    rate: Floats
    error: Floats
    sample_bytes: Floats
    seed: int = 0

    def batches(self) -> Floats:
        """(N,) samples that arrive in a second, within the bounds of the stream."""
        return np.array([self.spec.batch(rate) for rate in self.rate], np.float64)

    def at_bounds(self) -> Bools:
        """(N,) whether a batch that follows the rate is at a bound, and follows it no more."""
        samples = self.batches()
        return (samples <= self.spec.least) | (samples >= self.spec.most)

    def surplus(self, batches: Floats, cycle_s: Floats) -> Floats:
        """(C, N) samples a second that arrive beyond those that steps use; 0 for no member.

        batches: (C, N) samples of a step; cycle_s: (C, N), infinite for no member.
        """
        more = np.where(np.isfinite(cycle_s), self.rate - batches / cycle_s, 0.0)
        return np.where(more > _STEADY * self.rate, more, 0.0)

    def buffered(self, batches: Floats, surplus: Floats, seconds: Floats) -> Floats:
        """(C, N) samples in the buffers after so many seconds, (C, N).

        Truncation keeps what arrives in a second, or a batch.
        """
        most = np.maximum(batches, np.floor(self.rate + 0.5)) if self.truncates else np.inf
        return np.minimum(surplus * seconds, most)

    @property
    def truncates(self) -> bool:
        """Whether the surplus is dropped, so that no buffer grows for long."""
        return self.spec.policy == TRUNCATE


def unknown_rates(profile: Profile, names: Iterable[str], spec: StreamSpec) -> dict[str, str]:
    """The reason by device whose rate is unknown."""
    reasons = {}
    for name in names:
        try:
            if not _rate(profile, name, spec, 0) > 0:
                reasons[name] = f"{spec.text}: no sound sample arrives there"
        except ValueError as error:
            reasons[name] = str(error)
    return reasons


def of_devices(profile: Profile, steps: Mapping[str, StepProfile], settings: RunSettings) -> StreamRates:
    """The streams of the devices in ``steps``, in that order, of which all rates are known."""
    spec, seed = settings.stream, settings.rates_seed
    assert spec is not None, "samples arrive in streams"
    return StreamRates(
        spec,
        np.array([_rate(profile, name, spec, seed) for name in steps]),
        np.array([_error(profile, name, spec) for name in steps]),
        np.array([_sample_bytes(profile, name, step, spec) for name, step in steps.items()]),
        seed,
    )


def _rate(profile: Profile, name: str, spec: StreamSpec, seed: int) -> float:
    """Samples a second; a replay says its rate itself. Raises ValueError where it is unknown."""
    if spec.source == "replay":
        return spec.replay(name, seed).mean_rate()
    measured = profile.devices[name].streams.get(spec.named(name))
    if measured is None:
        raise ValueError(f"the rate of its stream is unknown; run `planner profile --stream {spec.text}`")
    return measured.rate


def _error(profile: Profile, name: str, spec: StreamSpec) -> float:
    """That of a measured rate, which is known."""
    return 0.0 if spec.source == "replay" else profile.devices[name].streams[spec.named(name)].error


def _sample_bytes(profile: Profile, name: str, step: StepProfile, spec: StreamSpec) -> float:
    """As measured; of a replay, those of an image of the model's own shape, a byte a number."""
    if spec.source != "replay":
        return profile.devices[name].streams[spec.named(name)].sample_bytes
    if step.setup.job or models.is_user_model(step.model) or step.model not in models.MODELS:
        return math.nan
    known = models.model(step.model)
    if models.fingerprint(known) != step.setup.fingerprint:
        return math.nan
    codec = ArrayCodec([ArrayType("|u1", known.input_shape), ArrayType("<i8", ())])
    return float(len(codec.encode((np.zeros(known.input_shape, np.uint8), np.zeros((), np.int64)))))


def least_cycles(arrive_s: Floats, steps: Floats, members: Bools, together: bool) -> Floats:
    """(C, N) seconds below which no step of a member is, for its samples or another's; else 0.

    arrive_s: (C, N) in which the samples of a step arrive.
    steps: (C, N) of a member between two exchanges.
    together: whether members wait for one another at each exchange.
    """
    round_s = np.where(members, arrive_s * steps, 0.0)
    if together:
        round_s = np.where(members, round_s.max(axis=1, keepdims=True), 0.0)
    return round_s / steps


def slowest_streams(free_s: Floats, least_s: Floats, arrive_s: Floats) -> Bools:
    """(C, N) whose samples hold up their own steps, and those of others that wait for them.

    free_s: (C, N) cycles if nobody waited for samples; least_s: ``least_cycles``.
    arrive_s: as for that.
    """
    return np.asarray((least_s > free_s) & (arrive_s >= least_s * (1 - _STEADY)))


def waiting_shares(
    free_s: Floats, least_s: Floats, arrive_s: Floats, work_s: Floats, steps: Floats, members: Bools, together: bool
) -> Floats:
    """(C, N) shares of a member's time in which it waits for its own samples; 0 for no member.

    Where members wait for one another, those with the slowest stream wait until its samples are
    there. The longest work among them then ends the round, which may be less than the longest of
    all.

    work_s: (C, N) that a member computes in a step. Others as for ``slowest_streams`` and
        ``least_cycles``.
    """
    slowest = members & slowest_streams(free_s, least_s, arrive_s)
    if together:
        worked_s = np.where(members, work_s * steps, 0.0)
        of_slowest_s = np.where(slowest, worked_s, 0.0).max(axis=1, keepdims=True)
        free_s = free_s - (worked_s.max(axis=1, keepdims=True) - of_slowest_s) / steps
    longer = np.divide(free_s, least_s, out=np.ones_like(least_s), where=slowest)
    return np.where(slowest, 1 - longer.clip(0.0, 1.0), 0.0)


def notes(profile: Profile, steps: Mapping[str, StepProfile], streams: StreamRates, follows: bool) -> list[str]:
    """What the operator must know of a prediction with streams.

    follows: whether batches follow the rates.
    """
    spec = streams.spec
    found = [f"steps wait for samples of --stream {spec.text}"]
    if spec.source == "replay":
        found[0] += f", whose rates are those of --seed {streams.seed}"
        if spec.options.get("shape", CONSTANT) != CONSTANT or "stop" in spec.options:
            found.append("a rate that changes counts with its mean, and the end of a stream does not count")
    return [*found, *(_batch_notes(profile, steps, streams) if follows else ())]


def _batch_notes(profile: Profile, steps: Mapping[str, StepProfile], streams: StreamRates) -> list[str]:
    """Batches that follow the rates, and those among them that are far from what was timed."""
    outside = []
    for (name, step), batch in zip(steps.items(), streams.batches(), strict=True):
        smallest, largest = gradient_times(profile.devices[name], step).sizes
        if not smallest <= batch <= largest:
            outside.append(f"{batch:g} on {name}, timed from {smallest} to {largest}")
    told = "batches are what arrives in a second"
    if not outside:
        return [told]
    return [f"{told}; some lie outside of what was timed, and their times follow a line: {'; '.join(outside)}"]
