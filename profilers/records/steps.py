"""A step profile has what the steps of one model took on one device."""

from typing import NamedTuple, Optional, Tuple

from profilers.records.readings import Samples, Window
from profilers.records.step_costs import StepCosts


class Repeat(NamedTuple):
    """A repeated measurement of a profiled model; fields as in ``StepProfile``."""

    gradient_s: Samples
    copy_s: Samples
    update_s: Samples
    cpu_s_per_step: float

    def check(self) -> None:
        """Raises ValueError where there is no step, or one that takes no time."""
        _check_steps(self.gradient_s, self.update_s)


class Contention(NamedTuple):
    """How much longer gradients take while the other devices on a kernel compute.

    names: of all that computed at the same time, itself included.
    factor: mean time of a gradient then, over that of one alone.
    error: relative standard error of the factor.
    """

    names: Tuple[str, ...]
    factor: float
    error: float

    def check(self) -> None:
        """Raises ValueError where no other device computed, or gradients took no time."""
        if len(set(self.names)) < 2 or not self.factor > 0:
            raise ValueError("contention: a factor of %g among %d devices" % (self.factor, len(set(self.names))))


class BatchTiming(NamedTuple):
    """Gradient times at one batch size."""

    batch: int
    gradient_s: Samples

    def check(self) -> None:
        """Raises ValueError where there is no gradient, or one that takes no time."""
        _check_seconds(self.gradient_s)


class BatchMemory(NamedTuple):
    """The most memory that a process had during steps at one batch size.

    host_bytes: its own, without files that it has mapped; None where that cannot be measured.
    accelerator_bytes: of arrays on an accelerator; None without one.
    """

    batch: int
    host_bytes: Optional[int]
    accelerator_bytes: Optional[int] = None


class ComputeSettings(NamedTuple):
    """How a replica computes a gradient, when it is timed and when it is trained.

    micro_batch: most samples that are computed at once; 0 for whole batches.
    precision: of the forward and backward pass.
    activation_checkpointing: the model's blocks keep their inputs only, and are computed once more
        in the backward pass.
    """

    micro_batch: int = 0
    precision: str = "fp32"
    activation_checkpointing: bool = False


class Alternative(NamedTuple):
    """The same step, computed in a way that takes less memory.

    timings: gradients by batch size, smallest first.
    memory: their peaks.
    """

    compute: ComputeSettings
    timings: Tuple[BatchTiming, ...]
    memory: Tuple[BatchMemory, ...]


class StepMemory(NamedTuple):
    """Peak memory of a step by batch size, smallest first.

    accelerator_available_bytes: what the process could have of it in all; None where unknown.
    is_shared: the accelerator takes its memory from the host's.
    too_large: the smallest batch size that ran, or would have run, out of memory; None for none.
    reason: why ``host_bytes`` are not known.
    alternatives: where the batch asked for takes most of the memory, or does not fit.
    """

    batches: Tuple[BatchMemory, ...]
    accelerator_available_bytes: Optional[int] = None
    is_shared: bool = False
    too_large: Optional[int] = None
    reason: Optional[str] = None
    alternatives: Tuple[Alternative, ...] = ()

    def check(self) -> None:
        """Raises ValueError where batch sizes do not rise, or one that ran is too large."""
        sizes = [each.batch for each in self.batches]
        if any(small >= large for small, large in zip(sizes, sizes[1:])):
            raise ValueError("batches: expected rising batch sizes, found %s" % sizes)
        if self.too_large is not None and sizes and self.too_large <= sizes[-1]:
            raise ValueError("too_large: %d is not above %d, which ran" % (self.too_large, sizes[-1]))


class StepSetup(NamedTuple):
    """How the steps of a model were made and timed.

    requested_batch: the batch size asked for, where it did not fit and a smaller one was timed.
    steady: the warm-up ended; precise: the mean step is known well.
    job: whether it is a user's job; samples: those of its training data, where known;
        own_optimizer: whether it brings an optimizer.
    """

    fingerprint: str
    framework_version: str
    accelerator: str
    threads: int
    slowdown: float
    protocol: str
    steady: bool
    precise: bool
    compute: ComputeSettings = ComputeSettings()
    requested_batch: Optional[int] = None
    job: bool = False
    samples: Optional[int] = None
    own_optimizer: bool = False


class ModelSize(NamedTuple):
    """Elements that are trained, bytes of them and of what is not trained, but changed by steps.

    layers: elements of each trained variable, in the order of the flat buffer.
    blocks: elements of each block that a member of a sharded run gathers at once, without the rest
        of the model; frozen_bytes: of parameters that are not trained, which no step exchanges.
    """

    parameters: int
    parameter_bytes: int
    state_bytes: int
    layers: Tuple[int, ...] = ()
    blocks: Tuple[int, ...] = ()
    frozen_bytes: int = 0

    def check(self) -> None:
        """Raises ValueError where the variables do not add up to the parameters."""
        if self.layers and sum(self.layers) != self.parameters:
            raise ValueError("layers: %d elements of %d parameters" % (sum(self.layers), self.parameters))


class StepProfile(NamedTuple):
    """Step times of one model on one device.

    A step of a single device takes gradient_s + update_s. A step of a worker in a cluster takes
    gradient_s + copy_s and the exchange with the server.

    update_s: of SGD, or of the job's own optimizer.
    data_s: mean seconds of a gradient that it waits for its batch.
    window: counters and sensors meanwhile.
    other_batches: gradient times at the half batch size and at further ones, from which those at
        any other are predicted.
    memory: None where it was not measured.
    contention: with the others on its kernel; None where there are none, or they were not timed
        together.
    """

    model: str
    framework: str
    batch: int
    setup: StepSetup
    size: ModelSize
    gradient_s: Samples
    copy_s: Samples
    update_s: Samples
    cpu_s_per_step: float
    data_s: float
    window: Window
    costs: StepCosts
    other_batches: Tuple[BatchTiming, ...] = ()
    memory: Optional[StepMemory] = None
    contention: Optional[Contention] = None

    @property
    def planned_batch(self) -> int:
        """The batch size that the profile was made for."""
        return self.setup.requested_batch or self.batch

    def computed_by(self, other: Alternative) -> "StepProfile":
        """The timing as it would be if the gradients were computed in another way."""
        assert self.memory is not None, "it has the alternatives"
        *smaller, largest = other.timings
        return self._replace(
            batch=largest.batch,
            setup=self.setup._replace(compute=other.compute),
            gradient_s=largest.gradient_s,
            other_batches=tuple(smaller),
            memory=self.memory._replace(batches=other.memory, too_large=None, alternatives=()),
        )

    @property
    def half_batch_s(self) -> Samples:
        """Gradient times at half the batch size; none where that was not timed."""
        halves = [other.gradient_s for other in self.other_batches if other.batch == self.batch // 2]
        return halves[0] if halves else Samples("s", ())

    def check(self) -> None:
        """Raises ValueError where there is no step, or figures of it do not fit together."""
        _check_steps(self.gradient_s, self.update_s)
        longest_s = max(self.gradient_s.values + self.gradient_s.warmup)
        if self.data_s > longest_s:
            raise ValueError("data_s: %g s are longer than any gradient, %g s" % (self.data_s, longest_s))
        if self.planned_batch < self.batch:
            raise ValueError("requested_batch: %d is below the batch, %d" % (self.planned_batch, self.batch))
        sizes = [self.batch] + [other.batch for other in self.other_batches]
        if len(set(sizes)) < len(sizes):
            raise ValueError("other_batches: a batch size is there twice in %s" % sizes)
        too_large = self.memory.too_large if self.memory else None
        if too_large is not None and too_large <= max(sizes):
            raise ValueError("memory: too_large: %d is not above %d, which was timed" % (too_large, max(sizes)))


def _check_steps(gradient_s: Samples, update_s: Samples) -> None:
    _check_seconds(gradient_s)
    if not update_s.values:  # fewer than gradients are enough
        raise ValueError("update_s: 0 values for %d steps" % len(gradient_s.values))


def _check_seconds(gradient_s: Samples) -> None:
    if not gradient_s.values:
        raise ValueError("gradient_s: expected seconds, found none")
    if not all(each > 0 for each in gradient_s.values):
        raise ValueError("gradient_s: expected seconds above 0, found 0")
