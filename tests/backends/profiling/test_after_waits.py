"""What a wait adds to a gradient is the difference of turns with waits and without."""

import pytest

from backends.profiling import after_waits


class Clocks:
    """A gradient takes 1 s of its thread, or 3 s after a wait, and ``wall_s`` by the clock."""

    def __init__(self, wall_s: float = 0.05) -> None:
        self.now_s = self.cpu_s = 0.0
        self.waited = False
        self.wall_s, self.made = wall_s, 0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.waited = seconds > 0

    def gradient(self) -> None:
        self.made += 1
        self.now_s += self.wall_s
        self.cpu_s += 3.0 if self.waited else 1.0
        self.waited = False


def measured(monkeypatch: pytest.MonkeyPatch, clocks: Clocks) -> float:
    monkeypatch.setattr(after_waits, "time", clocks)
    monkeypatch.setattr(after_waits, "thread_cpu_s", lambda: clocks.cpu_s)
    return after_waits.measure(clocks.gradient)


def test_it_is_what_gradients_after_waits_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, Clocks()) == pytest.approx(2.0)


def test_slow_gradients_are_made_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(0.45)
    assert measured(monkeypatch, clocks) == pytest.approx(2.0)
    assert clocks.made == 1 + 3 * after_waits.FEWEST


def test_of_a_long_gradient_no_wait_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(0.6)
    assert measured(monkeypatch, clocks) == 0.0
    assert clocks.made == 1


def test_it_is_never_less_than_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks()
    monkeypatch.setattr(clocks, "sleep", lambda seconds: setattr(clocks, "cpu_s", clocks.cpu_s - seconds))
    assert measured(monkeypatch, clocks) == 0.0
