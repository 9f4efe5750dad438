"""A device that is slowed down pauses where its computing ends, and computes as before."""

import pytest

from backends.frameworks.optimizer import GradientSettings
from backends.training import step
from backends.training.compute_clock import ComputeClock, clock_of
from tests.backends.fakes import DrawnBatches, Softmax


class SlowedClock(ComputeClock):
    """Computing takes a second by it; ``pauses`` has what it has paused for."""

    def __init__(self, slowdown: float) -> None:
        self.pauses: list[float] = []
        self._now_s = 0.0
        super().__init__(self._tick, slowdown, self.pauses.append)

    def _tick(self) -> float:
        self._now_s += 1.0
        return self._now_s


@pytest.mark.parametrize(("slowdown", "pauses"), [(1.0, []), (4.0, [3.0])])
def test_a_gradient_pauses_for_the_rest_of_its_time(slowdown: float, pauses: list[float]) -> None:
    replica, clock = Softmax(), SlowedClock(slowdown)
    vars(replica)["_compute_clock"] = clock
    step.step(replica, DrawnBatches(), GradientSettings())
    assert clock.pauses == pauses


def test_waiting_for_other_members_is_not_slowed_down() -> None:
    clock = SlowedClock(4.0)
    with clock:
        clock.waits(True)
        clock.waits(False)
    assert clock.pauses == [3.0, 3.0]  # before the wait and after it


def test_the_clock_of_a_replica_is_the_same_for_as_long_as_it_lives() -> None:
    replica = Softmax()
    assert clock_of(replica) is clock_of(replica)
