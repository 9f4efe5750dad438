"""What a wait, or a message, adds to a gradient is the difference of turns with and without."""

import pytest

from backends.profiling import cold_gradients


class Clocks:
    """A gradient takes 2 ms of its thread, or 5 ms after a wait, and ``wall_s`` by the clock."""

    def __init__(self, wall_s: float = 0.05, usual_s: float = 0.002, later_s: float = 0.005) -> None:
        self.now_s = self.cpu_s = 0.0
        self.waited = False
        self.wall_s, self.usual_s, self.later_s = wall_s, usual_s, later_s
        self.made = 0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.waited = True

    def gradient(self) -> None:
        self.made += 1
        self.now_s += self.wall_s
        self.cpu_s += self.later_s if self.waited else self.usual_s
        self.waited = False


def measured(monkeypatch: pytest.MonkeyPatch, clocks: Clocks) -> float:
    monkeypatch.setattr(cold_gradients, "time", clocks)
    monkeypatch.setattr(cold_gradients, "thread_cpu_s", lambda: clocks.cpu_s)
    return cold_gradients.after_wait_s(clocks.gradient)


def test_it_is_what_gradients_after_waits_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, Clocks()) == pytest.approx(0.003)


def test_slow_gradients_are_made_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(wall_s=0.45)
    assert measured(monkeypatch, clocks) == pytest.approx(0.003)
    assert clocks.made == 2 + 3 * cold_gradients.FEWEST


def test_of_a_long_gradient_no_wait_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(wall_s=0.2, usual_s=0.02, later_s=0.03)
    assert measured(monkeypatch, clocks) == 0.0
    assert clocks.made == 2


def test_it_is_never_less_than_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, Clocks(later_s=0.001)) == 0.0
