"""A program that tells one thing and ends is run for what it prints."""

import subprocess
from typing import Sequence

LIMIT_S = 10.0


def output(command: Sequence[str]) -> str:
    """The output of a program; "" where it is absent, hangs or cannot be run."""
    nowhere = subprocess.DEVNULL
    try:
        done = subprocess.run(
            command, check=False, stdin=nowhere, stdout=subprocess.PIPE, stderr=nowhere, timeout=LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")
