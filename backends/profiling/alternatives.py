"""Where a batch hardly fits or does not, other ways to compute it are measured: they take less.

A few gradients show what each takes of time, and how many bytes fewer of tensors. The memory of a
process would not show it, for it still has what was freed of larger steps.
"""

from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple

from backends.frameworks.base import Replica
from backends.jobs.failure import JobFailure
from backends.profiling import batch_curve
from profilers.mixed_precision import BF16, FP32
from profilers.records.steps import Alternative, BatchMemory, BatchTiming, ComputeSettings

#: Gives a function that computes a gradient of a batch size and returns its seconds.
GradientAt = Callable[[int], Callable[[], float]]
#: Does a piece of work; the most bytes of its tensors at once, or None where that is unknown.
LiveBytes = Callable[[Callable[[], Any]], Optional[int]]
#: What a model raises that cannot compute in another way, or not within the memory. Nobody asked
#: for that way, so the model's profile goes on without it.
CANNOT = (JobFailure, RuntimeError, ValueError, MemoryError)


def measure(
    replica: Replica,
    compute: ComputeSettings,
    precisions: Sequence[str],
    plain: Sequence[BatchMemory],
    gradient_at: GradientAt,
    live_bytes: LiveBytes,
) -> Tuple[Alternative, ...]:
    """Measure what the replica can do, which goes on with the last of them.

    compute: how it computes now. precisions: the mixed ones that the device is fast in.
    plain: peaks as it computes now; the two smallest sizes are measured again.
    A way in which the model cannot compute is left out, and all of them where bytes are unknown.
    """
    peaks = {each.batch: each for each in plain[:2]}
    before = {size: live_bytes(gradient_at(size)) for size in peaks}
    if None in before.values():
        return ()
    found = []
    for other, switch in _switches(replica, compute, precisions):
        memory: List[BatchMemory] = []
        timings: List[BatchTiming] = []
        try:
            switch()
            for size, peak in sorted(peaks.items()):
                timings.append(batch_curve.timed(gradient_at(size), size))
                memory += _changed(peak, before[size], live_bytes(gradient_at(size)))
        except CANNOT:
            continue
        finally:
            replica.compute_in(compute.precision)
        if len(memory) == len(peaks):
            found.append(Alternative(other, tuple(timings), tuple(memory)))
    return tuple(found)


def _changed(peak: BatchMemory, before: Optional[int], now: Optional[int]) -> List[BatchMemory]:
    """The peak with other tensors; none where these are unknown."""
    if before is None or now is None:
        return []
    if peak.accelerator_bytes is not None:
        return [peak._replace(accelerator_bytes=peak.accelerator_bytes + now - before)]
    return [] if peak.host_bytes is None else [peak._replace(host_bytes=peak.host_bytes + now - before)]


def _switches(
    replica: Replica, compute: ComputeSettings, precisions: Sequence[str]
) -> Iterator[Tuple[ComputeSettings, Callable[[], None]]]:
    """Other ways to compute, and what lets the replica do so; the last cannot be undone."""
    if compute.precision == FP32 and BF16 in precisions:
        yield compute._replace(precision=BF16), lambda: replica.compute_in(BF16)
    if not compute.activation_checkpointing:
        yield compute._replace(activation_checkpointing=True), replica.checkpoint_activations
