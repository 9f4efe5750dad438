"""What a wait adds to the gradient after it."""

from types import SimpleNamespace

import pytest

from backends.profiling import after_wait


class Device:
    """Its gradients take some processor seconds, and more right after a wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, gradient_s: float, more_s: float, cores: float = 1.0) -> None:
        self.cpu_s = 0.0
        self.made = 0
        self._gradient_s, self._more_s = gradient_s, more_s
        self._waited = False
        clock = SimpleNamespace(sleep=self._sleep, monotonic=lambda: self.cpu_s)
        monkeypatch.setattr(after_wait, "time", clock)
        monkeypatch.setattr(after_wait, "thread_cpu_s", lambda: self.cpu_s)
        monkeypatch.setattr(after_wait, "available_cores", lambda: cores)

    def _sleep(self, seconds: float) -> None:
        self._waited = True

    def gradient(self) -> None:
        self.made += 1
        self.cpu_s += self._gradient_s + self._more_s * self._waited
        self._waited = False


@pytest.mark.parametrize(("cores", "expected_s"), [(4.0, 3e-4), (1.0, 3e-4), (0.5, 6e-4)])
def test_it_is_told_as_seconds_of_the_device(monkeypatch: pytest.MonkeyPatch, cores: float, expected_s: float) -> None:
    device = Device(monkeypatch, 1e-3, 3e-4, cores)
    assert after_wait.measure(device.gradient) == pytest.approx(expected_s)
    assert device.made == 3 * after_wait.MOST


def test_none_is_told_where_gradients_are_too_long_to_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(monkeypatch, 0.02, 3e-4)
    assert after_wait.measure(device.gradient) == 0.0
    assert device.made == 2


def test_a_gradient_that_happens_to_be_shorter_after_waits_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert after_wait.measure(Device(monkeypatch, 1e-3, -1e-4).gradient) == 0.0


def test_a_few_pairs_are_enough_where_they_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(after_wait, "LIMIT_S", 0.0)
    device = Device(monkeypatch, 1e-3, 0.0)
    after_wait.measure(device.gradient)
    assert device.made == 3 * after_wait.FEWEST
