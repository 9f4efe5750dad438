"""The time of a sample is that of reading and evaluating it, in batches as in a run."""

import numpy as np
import pytest

from backends.data.loader import ArraySamples
from backends.profiling import evaluation_speed
from backends.profiling.evaluation_speed import evaluation_s


class Ticks:
    """A clock that passes one second with every batch that a replica evaluates."""

    def __init__(self):
        self.now_s, self.batches = 0.0, []

    def perf_counter(self):
        return self.now_s

    def evaluate(self, batch):
        self.batches.append(len(batch[0]))
        self.now_s += 1.0
        return 0.0, {}


@pytest.fixture
def ticks(monkeypatch):
    made = Ticks()
    monkeypatch.setattr(evaluation_speed, "time", made)
    monkeypatch.setattr(evaluation_speed, "ENOUGH_S", 2.5)
    return made


def samples(count):
    return ArraySamples(np.zeros((count, 2), np.float32), np.zeros(count, np.int64))


def test_seconds_are_those_of_one_sample_of_whole_batches(ticks):
    assert evaluation_s(ticks, samples(8), 4) == pytest.approx(2.0 / 8)


def test_a_last_batch_may_be_smaller(ticks):
    assert evaluation_s(ticks, samples(6), 4) == pytest.approx(2.0 / 6)


def test_no_more_batches_are_begun_once_it_took_long_enough(ticks):
    assert evaluation_s(ticks, samples(100), 4) == pytest.approx(3.0 / 12)


def test_the_first_batch_is_not_timed_the_first_time(ticks):
    evaluation_s(ticks, samples(4), 4)
    assert ticks.batches == [4, 4]
