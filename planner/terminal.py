"""Text of devices, scripts and files reaches the terminal with its control characters spelt out."""

import os
import re
import sys
from pathlib import Path

from planner.errors import PlannerError

#: C0 but for tab and newline, DEL and C1; signs that turn the direction of text; other line ends.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""A text that commands no terminal: an escape character becomes the four signs ``\x1b``."""
    return _CONTROL.sub(lambda match: ascii(match[0])[1:-1], text.replace("\r\n", "\n"))


def open_closed_streams() -> None:
    """Let those of the three standard streams lead nowhere that were closed when this began."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - for as long as the program runs


def echo(text: str, err: bool = False, end: str = "\n") -> None:
    """Write to standard output, or to standard error, and flush."""
    print(visible(text), file=sys.stderr if err else sys.stdout, end=end, flush=True)


def agrees(question: str, option: str) -> bool:
    """Ask a question that y or yes answers. Raises PlannerError where nobody is there to answer.

    option: what answers in place of a person.
    """
    echo(f"{question} [y/N]: ", end="")
    answer = sys.stdin.readline()
    if not answer:
        echo("")
        raise PlannerError(f"{question} Nobody answers, as standard input has ended; {option} answers yes")
    return answer.strip().lower() in ("y", "yes")
