"""Where a batch does not fit into a device: what would, and what that takes of memory and time."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from backends.data.loader import part_sizes
from backends.frameworks.optimizer import ADAMW, OWN, SGD
from backends.profiling.smallest_change import SMALLER, kept_arrays, smallest_change
from planner.predict.gradient_times import GradientTimes
from planner.predict.memory import ACCELERATOR, HOST, Further, Memory, StepHeadroom
from planner.predict.shares import least_members
from planner.units import bytes_text
from profilers.records.steps import ComputeSettings, StepProfile
from profilers.stats import mean


class StepOffer(NamedTuple):
    """A way to compute a step of the whole batch that fits.

    needed_bytes: of the memory of which it takes the largest part.
    time_factor: its time over that of the plain step, an update included.
    changes: options that are added to those of the profile.
    """

    compute: ComputeSettings
    needed_bytes: float
    time_factor: float
    changes: tuple[str, ...]

    @property
    def text(self) -> str:
        """For the operator."""
        return f"{' '.join(self.changes)} ({bytes_text(self.needed_bytes)}, {self.time_factor:.2f} times the time)"


class Shortage(NamedTuple):
    """Why a batch size does not fit: the memory, the bytes needed and usable, and what would fit.

    needed_bytes: None where the step was seen to run out of memory.
    largest: the largest batch size that fits; 0 where none does.
    offers: the fastest first.
    change: of the training, where no batch fits.
    """

    name: str
    batch: int
    needed_bytes: float | None
    usable_bytes: float
    largest: int
    offers: tuple[StepOffer, ...] = ()
    change: str = ""

    @property
    def text(self) -> str:
        """For the operator."""
        found = f"batch {self.batch} ran out of memory when it was profiled"
        if self.needed_bytes is not None:
            usable = bytes_text(self.usable_bytes)
            found = f"batch {self.batch} needs {bytes_text(self.needed_bytes)} of its {self.name}, and may use {usable}"
        ways = [f"profile it with {' or '.join(each.text for each in self.offers)}"] if self.offers else []
        ways += [f"take --batch-size {self.largest}"] if self.largest else []
        return f"{found}; {', or '.join(ways) or f'no batch fits: {self.change}'}"


def shortage(headroom: StepHeadroom, batch: int) -> Shortage | None:
    """Why a batch size does not fit; None where it does."""
    if batch <= headroom.largest():
        return None
    largest, memory = int(headroom.largest()), headroom.tightest(batch)
    found = Shortage(HOST, batch, None, 0.0, largest, tuple(sorted(_offers(headroom, batch), key=_by_time)))
    if memory is None or memory.line.at(batch) <= memory.usable_bytes:
        return found
    return found._replace(
        name=memory.name,
        needed_bytes=memory.line.at(batch),
        usable_bytes=memory.usable_bytes,
        change="" if largest or found.offers else _smallest_change(headroom, memory),
    )


def _smallest_change(headroom: StepHeadroom, memory: Memory) -> str:
    """Of the training, by which a sample would fit."""
    step, needed, besides = headroom.step, memory.line.at(1), _besides(headroom.further, memory.name)
    if besides < 0:  # a share of the model, which is smaller the more members there are
        return "take more members, smaller samples or a smaller model"
    less = f"take an optimizer, a strategy or an engine that keeps less than {bytes_text(besides)} besides steps"
    helps = bool(besides) and needed - besides <= memory.usable_bytes
    at_once = step.setup.compute.micro_batch
    smaller = "" if memory.line.sample_bytes or at_once < 2 else f"profile it with a --micro-batch below {at_once}"
    arrays = kept_arrays(OWN if step.setup.own_optimizer else SGD) + besides / step.size.parameter_bytes
    members = least_members(step, arrays, needed, memory.usable_bytes)
    own = f" --optimizer {ADAMW}" if step.setup.own_optimizer else ""  # shares take planner's optimizers alone
    ways = [
        smaller,
        less if helps else "",
        smallest_change(step.size, arrays, needed, memory.usable_bytes),
        f"divide it among {members} such devices by --engine torch:shard=full{own}" if members else "",
    ]
    return ", or ".join(filter(None, ways)) or SMALLER


def _besides(further: Further, memory: str) -> float:
    """What a run keeps in a memory besides steps."""
    return {HOST: further.host, ACCELERATOR: further.accelerator}.get(memory, sum(further))


def too_small(
    headroom: Mapping[str, StepHeadroom], steps: Mapping[str, StepProfile], batch: int
) -> dict[str, Shortage]:
    """By device in ``steps`` whose memory is too small for a batch size."""
    found = {name: shortage(headroom[name], batch) for name in steps}
    return {name: short for name, short in found.items() if short}


def _by_time(offer: StepOffer) -> tuple[float, int]:
    return round(offer.time_factor, 2), len(offer.changes)


def _offers(headroom: StepHeadroom, batch: int) -> Iterator[StepOffer]:
    """In each way that was measured, the whole batch, or in the fewest parts that fit."""
    plain = headroom.step
    plain_s = _seconds(plain, batch) + mean(plain.update_s.values)
    fastest = math.inf
    for way in (headroom, *headroom.in_other_ways()):
        most, compute = way.largest(), way.step.setup.compute
        if not way.memories or most < 1:
            continue
        parts = part_sizes(batch, int(min(batch, most, compute.micro_batch or batch)))
        factor = (sum(_seconds(way.step, size) for size in parts) + mean(plain.update_s.values)) / plain_s
        if most < min(batch, compute.micro_batch or batch):
            compute = compute._replace(micro_batch=parts[0])
            if factor > fastest:
                continue  # more changes for more time
        fastest = min(fastest, factor)
        memory = way.tightest(parts[0])
        assert memory is not None, "some are known"
        yield StepOffer(compute, memory.line.at(parts[0]), factor, _changes(plain.setup.compute, compute))


def _changes(before: ComputeSettings, after: ComputeSettings) -> tuple[str, ...]:
    return (
        *([f"--precision {after.precision}"] if after.precision != before.precision else []),
        *(["--activation-checkpointing"] if after.activation_checkpointing > before.activation_checkpointing else []),
        *([f"--micro-batch {after.micro_batch}"] if after.micro_batch != before.micro_batch else []),
    )


def _seconds(step: StepProfile, batch: int) -> float:
    """Of a gradient; far from the sizes that were timed, in proportion to the nearest of them."""
    times = GradientTimes([step])
    fewest, most = times.reach
    near = min(max(batch, fewest), most)
    return times.at(near).seconds * max(1.0, batch / near)
