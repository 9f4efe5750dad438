"""A launch and each of its ranks end with exit codes as a shell would have them."""

import signal
from collections.abc import Sequence
from typing import NamedTuple

#: Shells add this to the number of the signal that ended a command.
SIGNALLED = 128
#: Exit code of a launch that Ctrl-C ended.
INTERRUPTED = SIGNALLED + signal.SIGINT


class RankEnd(NamedTuple):
    """How a rank ended.

    exit_code: 128 + n for signal n; None for one whose device was lost, or that did not start.
    ended_by: None for one that ended by itself, else why it was ended.
    seconds: from the start of the first rank.
    folder: the project's, on its device.
    """

    name: str
    rank: int
    exit_code: int | None
    ended_by: str | None
    seconds: float
    folder: str


class LaunchResult(NamedTuple):
    """How a launch ended.

    exit_code: that of the first rank to fail; 1 for one that has none; 130 after Ctrl-C.
    failed: that rank's name. reason: one line on why the launch ended early; "" if it did not.
    """

    exit_code: int
    failed: str | None
    reason: str
    seconds: float
    ranks: tuple[RankEnd, ...]


def exit_code(status: int) -> int:
    """The exit code for how a process ended: its own, or -n for signal n."""
    return status if status >= 0 else SIGNALLED - status


def in_words(code: int) -> str:
    """How a rank with this exit code ended."""
    if code <= SIGNALLED:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(code - SIGNALLED).name
    except ValueError:
        return f"ended with exit code {code}"
    hint = ", as the system does where memory is short" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}"


def ended_before(ends: Sequence[RankEnd]) -> str:
    """What may have made a rank fail: others that had ended before and left it alone."""
    names = ", ".join(f"{end.name} (rank {end.rank})" for end in ends if end.exit_code == 0 and end.ended_by is None)
    return f"; {names} had ended with exit code 0: do all ranks make the same number of steps?" if names else ""
