"""The steps that are timed do what a worker's steps do."""

import time
from types import SimpleNamespace

import pytest

from backends.frameworks.optimizer import OptimizerSettings
from backends.profiling import step_loop
from backends.profiling.step_loop import StepLoop
from backends.training import step
from tests.backends.fakes import DrawnBatches, Softmax
from tests.hand_clock import HandClock


class OnGpu(Softmax):
    """A replica whose weights, once updated there, have to be fetched from its accelerator."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched_weights = 0
        self._updated = False

    def update(self, optimizer: OptimizerSettings) -> None:
        super().update(optimizer)
        self._updated = True

    def fetch(self) -> None:
        self.fetched_weights += self._updated
        self._updated = False

    def load(self) -> None:
        self._updated = False


def test_no_step_copies_what_a_worker_does_not_copy() -> None:
    replica = OnGpu()
    loop = StepLoop(replica, DrawnBatches())
    for _ in range(5):
        assert all(seconds >= 0 for seconds in loop.step())
    assert replica.fetched_weights == 0


def test_what_passes_between_two_steps_is_part_of_the_second_but_not_what_passed_before_a_new_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = HandClock()  # on which steps take no time
    for module in (step_loop, step):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=clock, process_time=time.process_time))
    loop = StepLoop(Softmax(), DrawnBatches())
    phases = []
    for _ in range(3):
        phases.append(loop.step())
        clock.pause(1.0)
    assert phases == [(0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 0.0, 0.0)]
    loop.restart()
    assert loop.cpu_s_per_step == 0.0
    assert loop.step() == (0.0, 0.0, 0.0) and loop.cpu_s_per_step > 0.0
