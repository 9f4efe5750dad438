"""What a device alone does between two steps is timed in steps as a run makes them."""

from typing import Any

import pytest

from backends.data.loader import ArraySamples
from backends.frameworks.base import SGD
from backends.profiling import between_steps
from tests.backends.fakes import DrawnBatches, Softmax, images

TEST = ArraySamples(*images(8))


class Counted(Softmax):
    """Counts its gradients."""

    made = 0

    def gradient(self, batch: Any, rate: float = 1.0, weight_decay: float = 0.0, adds: bool = False) -> float:
        self.made += 1
        return super().gradient(batch, rate, weight_decay, adds)


def test_steps_are_made_until_there_is_a_time_between_enough_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(between_steps, "LIMIT_S", 1e9)
    replica, drawn = Counted(), DrawnBatches()
    drawn.batch = 5
    found = between_steps.measure(replica, drawn, TEST, SGD, 0.0)
    assert drawn.batch == 5
    assert replica.made == between_steps.MOST + 1
    assert len(found.values) == between_steps.MOST - 1 and len(found.warmup) == 1
    assert min(found.values) >= 0


def test_slow_steps_are_made_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(between_steps, "LIMIT_S", -1.0)
    replica = Counted()
    between_steps.measure(replica, DrawnBatches(), TEST, SGD, 0.0)
    assert replica.made == between_steps.FEWEST + 1


def test_its_share_of_a_core_stretches_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(between_steps, "thread_cpu_s", lambda: float(next(clock)))
    monkeypatch.setattr(between_steps, "available_cores", lambda: 0.25)
    found = between_steps.measure(Softmax(), DrawnBatches(), TEST, SGD, 0.0)
    assert set(found.values) == {4.0}


def test_what_is_part_of_a_gradient_already_counts_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(between_steps, "thread_cpu_s", lambda: float(next(clock)))
    monkeypatch.setattr(between_steps, "available_cores", lambda: 1.0)
    for counted_s, left_s in ((0.25, 0.75), (2.0, 0.0)):
        found = between_steps.measure(Softmax(), DrawnBatches(), TEST, SGD, counted_s)
        assert set(found.values) == {left_s}


def test_without_a_test_set_no_run_begins_and_nothing_is_measured() -> None:
    images_, labels = images(0)
    assert between_steps.measure(Softmax(), DrawnBatches(), ArraySamples(images_, labels), SGD, 0.0).values == ()
