"""A clock whose time passes when a test says so."""


class HandClock:
    """Seconds that a test sets; pausing passes them."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def pause(self, seconds: float) -> None:
        self.now_s += seconds
