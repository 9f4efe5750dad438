"""The program `planner` begins here, so that Ctrl-C while it is still imported ends in one line."""

import os
import signal
from contextlib import suppress
from types import FrameType

#: As a shell has it for SIGINT.
STOPPED = 130


def main() -> None:
    """Run `planner`."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)  # until ``interrupts.once``
    from planner.cli.main import main as run  # what it imports takes a tenth of a second

    run()


def _stop(_: int, __: FrameType | None) -> None:
    """End at once: much of what runs during an import would swallow a KeyboardInterrupt."""
    with suppress(OSError):  # standard error is closed
        os.write(2, b"planner: stopped\n")
    os._exit(STOPPED)
