"""Lines of Python that load an exported file are tried before anybody is told to use them."""

import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from backends.jobs.failure import BOLD

#: A job's function may read its data first.
LIMIT_S = 600.0


class Lines(NamedTuple):
    """Python that loads a file, and Python that then runs the model."""

    load: tuple[str, ...]
    use: tuple[str, ...] = ()


def working(lines: Lines) -> tuple[Lines, str]:
    """The lines as they run in a process of their own; those that use the model only if they do.

    A model may not take zeros. With the error of those that load the file; empty where they work.
    """
    error = _error_of((*lines.load, *lines.use))
    if error is None:
        return lines, ""
    if lines.use:
        error = _error_of(lines.load)
    return (lines, error) if error is not None else (Lines(lines.load), "")


def _error_of(code: Sequence[str]) -> str | None:
    """The last line of an error; None where there is none."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(code)], capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return f"it takes more than {LIMIT_S:g} s"
    if done.returncode == 0:
        return None
    # Keras says in bold why, and then lists below a title what it was given.
    lines = BOLD.sub("", done.stderr).splitlines()
    said = [line for line in lines if line and not line.startswith(" ") and not line.endswith(":")]
    return said[-1].partition(". ")[0] if said else f"Python ended with {done.returncode}"
