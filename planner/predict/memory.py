"""The memory of a step is a line in the batch size, on the host and on its accelerator.

Activations are in proportion to the batch; weights, gradients and the framework are there for any.
Steps are measured with SGD, or with a job's own optimizer. What a run keeps besides is added.
The line is that of least squares, raised until no measured peak lies above it: to come a little
short ends a run, and to have a little left costs nothing.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from backends.frameworks.optimizer import LARS, OWN, SGD, SLOT_NAMES, UPDATES
from backends.strategies.engine import TORCH, Engine
from backends.strategies.strategy import Strategy
from planner.arrays import Floats, Ints
from planner.predict.shares import member_bytes, replica_bytes, whole_bytes
from planner.profile.file import DeviceProfile, Profile
from profilers.records.steps import StepMemory, StepProfile

#: Share of the available memory that is left to other programs, and to what was not measured: data
#: sets, messages and fragments.
MARGIN = 0.1
HOST, ACCELERATOR, SHARED = "memory", "GPU memory", "memory, which its GPU shares"


class MemoryLine(NamedTuple):
    """Bytes of a step: those of any batch, and those of one sample more.

    at_once: most samples that are computed at once; a larger batch takes no more.
    """

    base_bytes: float
    sample_bytes: float
    at_once: float = math.inf

    def at(self, batch: int) -> float:
        """Bytes at a batch size."""
        return self.base_bytes + self.sample_bytes * min(batch, self.at_once)

    def largest(self, limit_bytes: float) -> float:
        """The largest batch size within a limit, a whole number; infinite where any fits."""
        if self.base_bytes > limit_bytes:
            return 0.0
        if self.sample_bytes <= 0:
            return math.inf
        found = math.floor((limit_bytes - self.base_bytes) / self.sample_bytes + 1e-9)
        return math.inf if found >= self.at_once else found


def fit(points: Sequence[tuple[int, float]], micro_batch: int = 0) -> MemoryLine | None:
    """The line over measured (batch, bytes); None for fewer than two sizes, which have no slope.

    micro_batch: most samples that are computed at once; 0 for all.
    """
    at_once = micro_batch or math.inf
    if len(points) < 2:
        return None
    batches, used = np.array(points, float).T
    batches = np.minimum(batches, at_once)
    apart = batches - batches.mean()
    slope = max(0.0, float(apart @ used / (apart @ apart))) if apart.any() else 0.0
    return MemoryLine(float((used - slope * batches).max()), slope, at_once)


class Further(NamedTuple):
    """Bytes that a run takes besides those of the steps that were measured."""

    host: float = 0.0
    accelerator: float = 0.0

    @classmethod
    def alone(cls, step: StepProfile, optimizer: str) -> "Further":
        """Of a device that trains alone."""
        return cls._of_arrays(step, *_native(optimizer))

    @classmethod
    def of_member(cls, step: StepProfile, strategy: Strategy, engine: Engine, members: int) -> "Further":
        """Of a member of a cluster: ranks update as a device alone does, peers on their processor.

        members: of the cluster, among whom an engine may divide the model.
        The workers of a server keep nothing; what that keeps is in ``ServerHeadroom``.
        """
        optimizer = strategy.optimizer.name
        if engine.is_sharded:
            return cls._of_share(step, _kept(optimizer), members)
        if engine.name == TORCH:
            on_host, on_accelerator = _native(optimizer)
            return cls._of_arrays(step, on_host, on_accelerator + 1 + (engine.hook == "powersgd"))
        if strategy.local:  # the weights before a round, and what a peer's outer step keeps
            on_host, on_accelerator = _native(optimizer)
            outer = 0 if strategy.through_server else _kept(strategy.shared_kind)
            return cls._of_arrays(step, on_host + 1 + outer, on_accelerator)
        return NOTHING if strategy.through_server else cls._of_arrays(step, _kept(optimizer), 0)

    @classmethod
    def _of_share(cls, step: StepProfile, kept: int, members: int) -> "Further":
        """Of a share of the model, in place of the whole replica that was measured."""
        size, measured = step.size, _kept(OWN if step.setup.own_optimizer else SGD)
        less_bytes = member_bytes(step, kept, members) - replica_bytes(size, measured)
        if step.setup.accelerator == "cpu":
            return cls(host=less_bytes)
        # A replica has weights and gradients on the host, too; a share is whole there once.
        return cls(float(whole_bytes(size) - 2 * size.parameter_bytes - size.frozen_bytes), less_bytes)

    @classmethod
    def _of_arrays(cls, step: StepProfile, on_host: int, on_accelerator: int) -> "Further":
        """Of so many arrays of the model's size, one of which is measured with SGD."""
        measured = _kept(OWN if step.setup.own_optimizer else SGD)
        if step.setup.accelerator == "cpu":
            return cls(host=float(step.size.parameter_bytes * max(0, on_host + on_accelerator - measured)))
        more = max(0, on_accelerator - measured)
        return cls(float(step.size.parameter_bytes * on_host), float(step.size.parameter_bytes * more))


NOTHING = Further()


def _native(optimizer: str) -> tuple[int, int]:
    """Arrays on the host and on the accelerator of a device that makes its update by itself."""
    return (_kept(optimizer), 0) if optimizer == LARS else (0, _kept(optimizer))


def _kept(optimizer: str) -> int:
    """Arrays of the model's size that an optimizer keeps; of a job's own they are measured."""
    return sum(name != UPDATES for name in SLOT_NAMES[optimizer])


class Memory(NamedTuple):
    """One memory of a device: what it is called, the line of a step, and the bytes available."""

    name: str
    line: MemoryLine
    available_bytes: float

    @property
    def usable_bytes(self) -> float:
        """The available bytes without the margin."""
        return (1 - MARGIN) * self.available_bytes


class StepHeadroom:
    """Which batch sizes of a model fit into a device; all that nothing is known against."""

    def __init__(self, step: StepProfile, available_bytes: float, further: Further = NOTHING) -> None:
        """available_bytes: of main memory."""
        self.step, self.further, self._available_bytes = step, further, available_bytes
        takes_less = sum(further) < 0  # than what was measured, as a share of the model does
        self._too_large = None if step.memory is None or takes_less else step.memory.too_large
        self.memories = [] if step.memory is None else _memories(step, step.memory, available_bytes, further)

    @classmethod
    def on(cls, device: DeviceProfile, step: StepProfile, further: Further = NOTHING) -> "StepHeadroom":
        """That of a timed model on its device."""
        return cls(step, math.inf if device.facts is None else float(device.facts.memory.available_bytes), further)

    def largest(self) -> float:
        """The largest batch size that fits, a whole number; infinite where none is known."""
        below = math.inf if self._too_large is None else self._too_large - 1.0
        return min([below, *(memory.line.largest(memory.usable_bytes) for memory in self.memories)])

    def tightest(self, batch: int) -> Memory | None:
        """The memory of which a batch size takes the largest part; None where none is known."""
        return max(self.memories, key=lambda each: each.line.at(batch) / max(1.0, each.available_bytes), default=None)

    def in_other_ways(self) -> Iterator["StepHeadroom"]:
        """Those of the other ways to compute the step that were measured."""
        for other in self.step.memory.alternatives if self.step.memory else ():
            yield StepHeadroom(self.step.computed_by(other), self._available_bytes, self.further)

    @property
    def main_memory(self) -> Memory | None:
        """The processor's memory; None where it is unknown."""
        return next((memory for memory in self.memories if memory.name != ACCELERATOR), None)


class ServerHeadroom(NamedTuple):
    """Which devices have headroom for a parameter server beside their work as one of its workers.

    free_bytes, sample_bytes, at_once: (N,), main memory besides that of an empty step, infinite
        where it is unknown, what each sample of a step takes of it, and the most samples that do.
    any_bytes, worker_bytes: what a server takes for any number of workers, and for each.
    """

    free_bytes: Floats
    sample_bytes: Floats
    at_once: Floats
    any_bytes: float
    worker_bytes: float

    @classmethod
    def among(cls, profile: Profile, steps: Mapping[str, StepProfile], strategy: Strategy) -> "ServerHeadroom":
        """That of the devices in ``steps``, in that order.

        A server has weights, what the optimizer keeps and a checkpoint's copies of both, and the
        last gradient of each worker. Where workers send differences, it also has their sums, and
        copies of these that wait for the others.
        """
        memories = [StepHeadroom.on(profile.devices[name], step).main_memory for name, step in steps.items()]
        size = next(iter(steps.values())).size
        return cls(
            np.array([math.inf if each is None else each.usable_bytes - each.line.base_bytes for each in memories]),
            np.array([0.0 if each is None else each.line.sample_bytes for each in memories]),
            np.array([math.inf if each is None else each.line.at_once for each in memories]),
            2.0 * ((1 + _kept(strategy.shared_kind)) * size.parameter_bytes + size.frozen_bytes + size.state_bytes),
            float((3 if strategy.compressor.sends_differences else 1) * size.parameter_bytes + size.state_bytes),
        )

    def left_bytes(self, hosts: Ints, batches: Ints) -> Floats:
        """Main memory that the steps of hosts leave, (C,), whose batches are (C,)."""
        at_once = np.minimum(batches, self.at_once[hosts])
        return np.asarray(np.maximum(0.0, self.free_bytes[hosts] - self.sample_bytes[hosts] * at_once))

    def needed_bytes(self, workers: Ints) -> Floats:
        """Main memory that servers of so many workers take, (C,)."""
        return np.asarray(self.any_bytes + self.worker_bytes * workers)


def _memories(step: StepProfile, memory: StepMemory, host_available_bytes: float, further: Further) -> list[Memory]:
    micro_batch = step.setup.compute.micro_batch
    host = [(each.batch, float(each.host_bytes)) for each in memory.batches if each.host_bytes is not None]
    gpu = [(each.batch, float(each.accelerator_bytes)) for each in memory.batches if each.accelerator_bytes is not None]
    if memory.is_shared:
        by_batch = dict(gpu)
        both = [(batch, used + by_batch[batch]) for batch, used in host if batch in by_batch]
        lines = [(SHARED, fit(both, micro_batch), sum(further), host_available_bytes)]
    else:
        told_bytes = memory.accelerator_available_bytes
        available_bytes = math.inf if told_bytes is None else float(told_bytes)
        lines = [
            (HOST, fit(host, micro_batch), further.host, host_available_bytes),
            (ACCELERATOR, fit(gpu, micro_batch), further.accelerator, available_bytes),
        ]
    return [
        Memory(name, line._replace(base_bytes=line.base_bytes + more), available)
        for name, line, more, available in lines
        if line and math.isfinite(available)
    ]
