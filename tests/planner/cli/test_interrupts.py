"""Ctrl-C, as it comes to a program of its own."""

import signal
import subprocess
import sys

import pytest

CHILD = """
import signal, sys, time
{prepare}
from planner.cli import interrupts
interrupts.once()
caught = 0
for pause_s in {pauses}:
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        caught += 1
    time.sleep(pause_s)
print(caught)
"""


def _caught(pauses: tuple[float, ...], prepare: str = "") -> int:
    text = CHILD.format(pauses=pauses, prepare=prepare)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.fixture(autouse=True)
def _as_in_the_foreground() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_one_that_comes_twice_at_once_interrupts_once() -> None:
    assert _caught((0.0, 0.0, 0.0)) == 1


def test_pressing_it_again_interrupts_again() -> None:
    assert _caught((0.3, 0.0)) == 2


def test_where_it_is_ignored_it_stays_ignored() -> None:
    assert _caught((0.0,), "signal.signal(signal.SIGINT, signal.SIG_IGN)") == 0
