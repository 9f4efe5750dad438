"""The steps that are timed do what a worker's steps do."""

import time

from backends.frameworks.optimizer import OptimizerSettings
from backends.profiling.step_loop import StepLoop
from tests.backends.fakes import DrawnBatches, Softmax


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


def test_what_passes_between_two_steps_is_part_of_the_second_but_not_what_passed_before_a_new_start() -> None:
    loop = StepLoop(Softmax(), DrawnBatches())
    began = time.perf_counter()
    phases = []
    for _ in range(3):
        phases.append(loop.step())
        time.sleep(0.05)
    loop.step()
    whole_s = time.perf_counter() - began
    assert phases[0][0] < 0.05 <= min(phases[1][0], phases[2][0])
    assert sum(map(sum, phases)) < whole_s
    time.sleep(0.05)
    loop.restart()
    assert loop.cpu_s_per_step == 0.0
    assert loop.step()[0] < 0.05 and loop.cpu_s_per_step > 0.0
