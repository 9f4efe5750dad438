"""Ctrl-C, SIGTERM and SIGHUP end a command in one way, and two at once count as one."""

import math
import os
import signal
import time
from types import FrameType

#: Two signals within this time count as one, because nobody presses twice so fast.
MOMENT_S = 0.1
_last = signal.SIGINT


def once() -> None:
    """Let signals within ``MOMENT_S`` raise KeyboardInterrupt only once.

    `timeout` sends a signal to a program and then to its whole group. A second KeyboardInterrupt
    that is raised while the first leaves a wait ends as "RuntimeError: release unlocked lock". A
    signal that is ignored, as SIGHUP is under nohup, stays so.
    """
    last_s = -math.inf

    def handle(number: int, __: FrameType | None) -> None:
        nonlocal last_s
        global _last
        now_s = time.monotonic()
        again = now_s - last_s < MOMENT_S
        last_s = now_s
        if number == signal.SIGHUP:
            _forget_terminal()
        if not again:
            _last = signal.Signals(number)
            raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handle)


def status() -> int:
    """The exit status of a program that such a signal has ended: 130 for Ctrl-C."""
    return 128 + _last


def _forget_terminal() -> None:
    """Write to nowhere what would go to a terminal that has hung up: that would be an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        if os.isatty(descriptor):
            os.dup2(nowhere, descriptor)
    os.close(nowhere)
