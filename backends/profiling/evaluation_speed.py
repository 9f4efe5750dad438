"""This module times how long a sample of the test set takes to be read and evaluated."""

import itertools
import time
from typing import Optional

from backends.data.loader import EvaluationSet
from backends.frameworks.base import Replica
from backends.training.compute_clock import EVALUATION, clock_of

#: Batches that are timed, at the most, and seconds after which no more are begun.
MOST_BATCHES, ENOUGH_S = 16, 0.1


def evaluation_s(replica: Replica, test: EvaluationSet, batch: int) -> Optional[float]:
    """Seconds of one sample, in batches of that size; None without samples.

    The first batch is evaluated once before: a framework may trace its computation for it.
    """
    first = next(iter(test.batches(batch)), None)
    if first is None:
        return None
    clock = clock_of(replica)
    clock.begin(EVALUATION)
    replica.evaluate(first[1])
    clock.end()
    began_s, samples = time.perf_counter(), 0
    for count, part in itertools.islice(test.batches(batch), MOST_BATCHES):
        clock.begin(EVALUATION)
        replica.evaluate(part)
        clock.end()
        samples += count
        if time.perf_counter() - began_s > ENOUGH_S:
            break
    return (time.perf_counter() - began_s) / samples
