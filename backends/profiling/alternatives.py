"""Where a batch hardly fits or does not, other ways to compute it are measured: they take less.

A few gradients show what each takes of time, and the most bytes of its tensors. The peak of the
process would not show it, for its heap has holes that larger steps left. A heap takes more than its
tensors, as much more as in the plain step; with checkpointing large arrays are not in it.
"""

from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from backends.frameworks.base import Replica
from backends.jobs.failure import JobFailure
from backends.profiling import batch_curve
from profilers.mixed_precision import BF16, FP32
from profilers.records.steps import Alternative, BatchMemory, BatchTiming, ComputeSettings

#: Gives a function that computes a gradient of a batch size and returns its seconds.
GradientAt = Callable[[int], Callable[[], float]]
#: What a model raises that cannot compute in another way, or not within the memory. Nobody asked
#: for that way, so the model's profile goes on without it.
CANNOT = (JobFailure, RuntimeError, ValueError, MemoryError)


class InWork(NamedTuple):
    """Bytes of a piece of work, None where they are unknown.

    live: the most that tensors take at once. resting: what the process has afterwards.
    """

    live: Optional[int]
    resting: Optional[int]


#: Does a piece of work and tells its bytes.
BytesOf = Callable[[Callable[[], Any]], InWork]


def measure(
    replica: Replica,
    compute: ComputeSettings,
    precisions: Sequence[str],
    plain: Sequence[BatchMemory],
    gradient_at: GradientAt,
    bytes_of: BytesOf,
) -> Tuple[Alternative, ...]:
    """Measure what the replica can do, which goes on with the last of them.

    compute: how it computes now. precisions: the mixed ones that the device is fast in.
    plain: peaks as it computes now; the two smallest sizes are measured again.
    A way in which the model cannot compute is left out, and all of them where bytes are unknown.
    """
    peaks = {each.batch: each for each in plain[:2]}
    before = {size: bytes_of(gradient_at(size)) for size in peaks}
    if not all(each.live for each in before.values()):
        return ()
    found = []
    for other, switch in _switches(replica, compute, precisions):
        memory: List[BatchMemory] = []
        timings: List[BatchTiming] = []
        try:
            switch()
            for size, peak in sorted(peaks.items()):
                timings.append(batch_curve.timed(gradient_at(size), size))
                memory += _changed(peak, before[size], bytes_of(gradient_at(size)), other.activation_checkpointing)
        except CANNOT:
            continue
        finally:
            replica.compute_in(compute.precision)
        if len(memory) == len(peaks):
            found.append(Alternative(other, tuple(timings), tuple(memory)))
    return tuple(found)


def _changed(peak: BatchMemory, before: InWork, now: InWork, returns_large: bool) -> List[BatchMemory]:
    """The peak with other tensors; none where these are unknown.

    returns_large: whether large arrays are given back when they are freed.
    """
    if not before.live or now.live is None:
        return []
    if peak.accelerator_bytes is not None:
        return [peak._replace(accelerator_bytes=peak.accelerator_bytes + now.live - before.live)]
    if peak.host_bytes is None or before.resting is None or now.resting is None:
        return []
    of_heap = 1.0 if returns_large else (peak.host_bytes - before.resting) / before.live
    return [peak._replace(host_bytes=now.resting + int(of_heap * now.live))]


def _switches(
    replica: Replica, compute: ComputeSettings, precisions: Sequence[str]
) -> Iterator[Tuple[ComputeSettings, Callable[[], None]]]:
    """Other ways to compute, and what lets the replica do so; the last cannot be undone."""
    if compute.precision == FP32 and BF16 in precisions:
        yield compute._replace(precision=BF16), lambda: replica.compute_in(BF16)
    if not compute.activation_checkpointing:
        yield compute._replace(activation_checkpointing=True), replica.checkpoint_activations
