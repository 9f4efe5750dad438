"""A step computes a gradient of a replica and times it, alike for every kind of member."""

import collections
import time
from typing import DefaultDict, Tuple

from backends.data.loader import BatchLoader, SampleSet
from backends.frameworks.base import Replica
from backends.protocol.frames import Scores

#: SampleSet evaluated at once: enough to use an accelerator fully, few enough for a small board.
EVALUATION_BATCH = 128


def step(
    replica: Replica, batches: BatchLoader, slowdown: float, rate: float, weight_decay: float = 0.0
) -> Tuple[float, float, float]:
    """Compute one gradient into the host buffers; return loss, gradient_s and copy_s.

    slowdown: factor by which computing is stretched.
    """
    began = time.perf_counter()
    loss = replica.gradient(next(batches), rate, weight_decay)
    stretch(time.perf_counter() - began, slowdown)
    computed = time.perf_counter()
    replica.fetch()
    return loss, computed - began, time.perf_counter() - computed


def stretch(seconds: float, slowdown: float) -> None:
    """Emulate a device ``slowdown`` times slower by sleeping for the rest of its time."""
    if slowdown > 1.0:
        time.sleep(seconds * (slowdown - 1.0))


def evaluate(replica: Replica, test: SampleSet) -> Scores:
    """Mean loss and metrics of a test set, and seconds. Raises ValueError where that is empty."""
    require_test_samples(test)
    began = time.perf_counter()
    count, loss = 0, 0.0
    metrics: DefaultDict[str, float] = collections.defaultdict(float)
    for samples, batch in test.batches(EVALUATION_BATCH):
        part_loss, part_metrics = replica.evaluate(batch)
        count += samples
        loss += samples * part_loss
        for name, value in part_metrics.items():
            metrics[name] += samples * value
    means = {name: total / count for name, total in metrics.items()}
    return Scores(loss / count, means, time.perf_counter() - began)


def require_test_samples(test: SampleSet) -> None:
    """Raises ValueError for an empty test set."""
    if not len(test):
        raise ValueError("the test set is empty: there is nothing to evaluate the model on; give at least one sample")
