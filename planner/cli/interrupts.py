"""Ctrl-C that comes twice for being pressed once."""

import math
import signal
import time
from types import FrameType

#: Two within it are one: nobody presses twice as fast.
MOMENT_S = 0.1
#: Exit status of what it has ended.
STOPPED = 130


def once() -> None:
    """Have Ctrl-C raise KeyboardInterrupt only once where it comes twice within a moment; one that is ignored stays so.

    `timeout` sends it to a program and then to all of its group. Raised again while the first is on its way out of a
    wait, it leaves a lock that the wait has not got back, and is lost in "RuntimeError: release unlocked lock".
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
