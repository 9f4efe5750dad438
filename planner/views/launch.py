"""This view shows what the ranks of a script print, and how they ended as JSON."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from planner.console import Detail, device_output, plain
from planner.launch.output import ERR
from planner.launch.result import LaunchResult
from planner.launch.script_run import LaunchCallbacks
from planner.terminal import visible
from profilers.records.json_values import json_value


@contextmanager
def ranks(detail: Detail, all_to_errors: bool, raw: bool = False) -> Iterator[LaunchCallbacks]:
    """Print each line behind its device, to the stream that it came from.

    all_to_errors: standard output is kept for a result.
    raw: whether what a script sends commands the terminal, as colours do.
    """
    console = Console(quiet=True) if detail is Detail.QUIET else plain(stderr=True)

    def on_line(name: str, stream: str, line: str) -> None:
        output = sys.stderr if all_to_errors or stream == ERR else sys.stdout
        print(f"[{name}] {line if raw else visible(line)}", file=output, flush=True)

    def on_note(text: str) -> None:
        console.print(text, soft_wrap=True)

    if detail is Detail.VERBOSE:
        with device_output(console):
            yield LaunchCallbacks(on_line, on_note)
    else:
        yield LaunchCallbacks(on_line, on_note)


def to_json(result: LaunchResult) -> dict[str, Any]:
    """The fields of ``LaunchResult``."""
    answer: dict[str, Any] = json_value(result)
    return answer
