"""This module counts a Ctrl-C that arrives twice within a moment as one."""

import math
import signal
import time
from types import FrameType

#: Two signals within this time count as one, because nobody presses twice so fast.
MOMENT_S = 0.1
#: Exit status of a program that Ctrl-C ended.
STOPPED = 130


def once() -> None:
    """Let two SIGINT within ``MOMENT_S`` raise KeyboardInterrupt only once.

    `timeout` sends SIGINT to a program and then to its whole group. A second KeyboardInterrupt that
    is raised while the first leaves a wait ends as "RuntimeError: release unlocked lock". Where
    SIGINT is ignored, it stays so.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    last_s = -math.inf

    def handle(_: int, __: FrameType | None) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        again = now_s - last_s < MOMENT_S
        last_s = now_s
        if not again:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handle)
