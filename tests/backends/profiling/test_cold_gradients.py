"""What a wait, or a message, adds to a gradient is the difference of turns with and without."""

from collections.abc import Sequence

import pytest

from backends.profiling import cold_gradients


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
    monkeypatch.setattr(cold_gradients, "time", clocks)
    monkeypatch.setattr(cold_gradients, "thread_cpu_s", lambda: clocks.cpu_s)
    return cold_gradients.after_wait_s(clocks.gradient)


def test_it_is_what_gradients_after_waits_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured(monkeypatch, Clocks()) == pytest.approx(2.0)


def test_slow_gradients_are_made_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(0.45)
    assert measured(monkeypatch, clocks) == pytest.approx(2.0)
    assert clocks.made == 1 + 3 * cold_gradients.FEWEST


def test_of_a_long_gradient_no_wait_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(0.6)
    assert measured(monkeypatch, clocks) == 0.0
    assert clocks.made == 1


@pytest.mark.parametrize("more_s", [(1.0, -0.6, 0.9, -0.8), (-1.0, -1.0, -1.0, -1.0)])
def test_what_differs_by_chance_counts_for_nothing(more_s: Sequence[float], monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(0.2)  # one gradient a turn: a first one, then by threes an idle, a usual and a later one
    later_s = iter(more_s * 2)

    def gradient() -> None:
        clocks.gradient()
        if clocks.made > 1 and clocks.made % 3 == 1:
            clocks.cpu_s += next(later_s)

    monkeypatch.setattr(cold_gradients, "time", clocks)
    monkeypatch.setattr(cold_gradients, "thread_cpu_s", lambda: clocks.cpu_s)
    assert cold_gradients.added_s(gradient, lambda: None) == 0.0
