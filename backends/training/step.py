"""A step computes a gradient of a replica and times it, alike for every kind of member."""

import collections
import time
from typing import DefaultDict, NamedTuple

from backends.data.loader import BatchSource, EvaluationSet
from backends.frameworks.base import Replica
from backends.protocol.frames import Scores


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


def step(replica: Replica, batches: BatchSource, slowdown: float, rate: float, weight_decay: float = 0.0) -> StepTaken:
    """Compute one gradient into the host buffers.

    slowdown: factor by which computing is stretched.
    """
    began = time.perf_counter()
    batch = next(batches)
    data_s = time.perf_counter() - began
    loss = replica.gradient(batch, rate, weight_decay)
    stretch(time.perf_counter() - began, slowdown)
    computed = time.perf_counter()
    replica.fetch()
    return StepTaken(loss, computed - began, time.perf_counter() - computed, data_s)


def stretch(seconds: float, slowdown: float) -> None:
    """Emulate a device ``slowdown`` times slower by sleeping for the rest of its time."""
    if slowdown > 1.0:
        time.sleep(seconds * (slowdown - 1.0))


def evaluate(replica: Replica, test: EvaluationSet) -> Scores:
    """Mean loss and metrics of a test set, and seconds. Raises ValueError where that is empty."""
    require_test_samples(test)
    began = time.perf_counter()
    count, loss = 0, 0.0
    metrics: DefaultDict[str, float] = collections.defaultdict(float)
    for samples, batch in test.batches(test.most_at_once):
        part_loss, part_metrics = replica.evaluate(batch)
        count += samples
        loss += samples * part_loss
        for name, value in part_metrics.items():
            metrics[name] += samples * value
    means = {name: total / count for name, total in metrics.items()}
    return Scores(loss / count, means, time.perf_counter() - began, replica.higher_is_better)


def require_test_samples(test: EvaluationSet) -> None:
    """Raises ValueError for an empty test set."""
    if test.is_empty:
        raise ValueError("the test set is empty: there is nothing to evaluate the model on; give at least one sample")
