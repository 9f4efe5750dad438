"""A step computes a gradient of a replica and times it, alike for every kind of member."""

import collections
import math
import time
from typing import Any, Callable, DefaultDict, NamedTuple

from backends.data.arrivals import never
from backends.data.loader import BatchSource, EvaluationSet
from backends.data.micro_batches import SplitBatch, parts_of
from backends.frameworks.base import Replica
from backends.frameworks.optimizer import GradientSettings
from backends.protocol.frames import Scores
from backends.training.compute_clock import EVALUATION, clock_of


class StepTaken(NamedTuple):
    """One gradient, which is in the host buffers then.

    gradient_s: seconds until it was computed, the wait for the data included.
    copy_s: seconds of the copy to the host.
    data_s: seconds of that wait.
    """

    loss: float
    gradient_s: float
    copy_s: float
    data_s: float


#: Torch's, so that a gradient of the very norm is clipped as there.
CLIP_EPSILON = 1e-6

#: Computes the gradient of a part of a batch, as ``Replica.gradient``; told whether it is the last.
ComputePart = Callable[[Any, float, float, bool, bool], float]


def gradient(replica: Replica, batch: Any, settings: GradientSettings) -> float:
    """Compute the gradient of a batch, alone or in parts; return the mean loss of its samples."""

    def compute(part: Any, rate: float, weight_decay: float, adds: bool, is_last: bool) -> float:
        return replica.gradient(part, rate, weight_decay, adds)

    return combine_parts(replica, batch, settings, compute)


def combine_parts(replica: Replica, batch: Any, settings: GradientSettings, compute: ComputePart) -> float:
    """As ``gradient``, with another function that computes the gradient of a part."""
    if settings.clip_norm is None and not isinstance(batch, SplitBatch):
        return compute(batch, settings.rate, settings.weight_decay, False, True)
    parts = parts_of(batch)  # a single one as well: members whose gradients are averaged do alike
    total, loss = sum(part.samples for part in parts), 0.0
    for number, part in enumerate(parts, 1):
        share = part.samples / float(total)
        loss += share * compute(part.batch, share, 0.0, number > 1, number == len(parts))
    factor = settings.rate
    if settings.clip_norm is not None:
        factor *= min(1.0, settings.clip_norm / (replica.gradient_norm() + CLIP_EPSILON))
    decay = settings.rate * settings.weight_decay
    if factor != 1.0 or decay:
        replica.rescale(factor, decay)
    return loss


def step(
    replica: Replica, batches: BatchSource, settings: GradientSettings, over: Callable[[], bool] = never
) -> StepTaken:
    """Compute one gradient into the host buffers.

    over: whether samples that have not arrived are no longer waited for.
    Raises SamplesMissing as ``Arrivals.wait`` does; that wait is no part of the times. After an
    error the state is as it was before: a member may hand it over with the weights.
    """
    batches.wait(over)
    began = time.perf_counter()
    replica.keep_state()
    try:
        with clock_of(replica):
            batch = next(batches)
            data_s = time.perf_counter() - began
            loss = gradient(replica, batch, settings)
    except BaseException:
        replica.changing[:] = replica.kept_state()
        replica.load()
        raise
    computed = time.perf_counter()
    replica.fetch()
    return StepTaken(loss, computed - began, time.perf_counter() - computed, data_s)


def evaluate(replica: Replica, test: EvaluationSet) -> Scores:
    """Mean loss and metrics of a test set, and seconds; a metric that is not finite is left out.

    Raises ValueError where the test set is empty.
    """
    require_test_samples(test)
    began = time.perf_counter()
    count, loss = 0, 0.0
    metrics: DefaultDict[str, float] = collections.defaultdict(float)
    clock = clock_of(replica)
    clock.begin(EVALUATION)
    try:
        replica.begin_evaluation()
        for samples, batch in test.batches(test.most_at_once):
            part_loss, part_metrics = replica.evaluate(batch)
            count += samples
            loss += samples * part_loss
            for name, value in part_metrics.items():
                metrics[name] += samples * value
            clock.begin(EVALUATION)
        figures = replica.end_evaluation({name: total / count for name, total in metrics.items()})
    finally:
        clock.end()
    finite = {name: value for name, value in figures.items() if math.isfinite(value)}
    return Scores(loss / count, finite, time.perf_counter() - began, replica.higher_is_better, count)


def require_test_samples(test: EvaluationSet) -> None:
    """Raises ValueError for an empty test set."""
    if test.is_empty:
        raise ValueError("the test set is empty: there is nothing to evaluate the model on; give at least one sample")
