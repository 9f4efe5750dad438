"""Results go to standard output, progress to standard error."""

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment

from planner.terminal import visible

#: Columns where standard output is a file or a pipe: nothing is wrapped or left out.
UNLIMITED_WIDTH = 1_000_000

#: (device, what it does now, share that is done or None where that is unknown)
OnProgress = Callable[[str, str, float | None], None]


class SafeConsole(Console):
    """A console in which only rich itself commands the terminal, and not the text that it shows."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


class Detail(Enum):
    """How much a command tells of its progress."""

    QUIET = "errors and the result only"
    NORMAL = "stages"
    VERBOSE = "every event, and what devices write to standard error"


def show(what: RenderableType | dict[str, Any]) -> None:
    """Print a table, or a dict as JSON, and flush, so that a closed pipe is noticed here."""
    if isinstance(what, dict):
        print(json.dumps(what, indent=1, allow_nan=False), flush=True)
    else:
        plain(width=None if sys.stdout.isatty() else UNLIMITED_WIDTH).print(what)


def plain(stderr: bool = False, width: int | None = None) -> Console:
    """A console that prints brackets and colons as they are: messages of devices hold them."""
    return SafeConsole(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


@contextmanager
def progress(detail: Detail = Detail.NORMAL) -> Iterator[OnProgress]:
    """Show a progress bar a device; a line a stage where standard error is no terminal."""
    console = plain(stderr=True)
    if detail is Detail.QUIET:
        yield lambda name, what, share: None
        return
    if detail is Detail.VERBOSE:
        with device_output(console):
            yield lambda name, what, share: console.print(f"{name}: {what}", soft_wrap=True)
        return
    bars = Progress(
        TextColumn("{task.fields[name]:12}", markup=False),
        BarColumn(20),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    lines: dict[str, TaskID] = {}
    said: dict[str, str] = {}

    def on_progress(name: str, what: str, share: float | None) -> None:
        if name not in lines:
            lines[name] = bars.add_task(what, total=None, name=name)
        total = None if share is None else 1.0
        bars.update(lines[name], description=what, total=total, completed=share or 0.0)
        stage = what.partition(" step ")[0]
        if not console.is_terminal and said.get(name) != stage:
            said[name] = stage
            console.print(f"{name}: {stage}", soft_wrap=True)

    with bars:
        yield on_progress


@contextmanager
def one_bar(detail: Detail = Detail.NORMAL) -> Iterator[OnProgress]:
    """Show one bar with what is done now and the time left, and a line where something ends.

    A share is that of all the work.
    """
    if detail is not Detail.NORMAL:
        with progress(detail) as on_progress:
            yield on_progress
        return
    console = plain(stderr=True)
    bar = Progress(
        BarColumn(20),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task("", total=1.0)

    def on_progress_of_all(name: str, what: str, share: float | None) -> None:
        if ends(what, share):
            console.print(f"{name}: {what}", soft_wrap=True)
        else:
            bar.update(task, description=f"{name}: {what}", completed=share)

    with bar:
        yield on_progress_of_all


def ends(what: str, share: float | None) -> bool:
    """Whether progress tells of the end of something, in success or failure."""
    return share == 1.0 or what.startswith("failed")


class _Printed(logging.Handler):
    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        self._console.print(record.getMessage(), soft_wrap=True)


@contextmanager
def device_output(console: Console) -> Iterator[None]:
    """Print each line that devices write to standard error."""
    handler = _Printed(console)
    logger = logging.getLogger("planner.devices")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


@contextmanager
def status(title: str) -> Iterator[OnProgress]:
    """Show a spinner and the time while work of unknown length is done."""
    console = plain(stderr=True)
    text = TextColumn("{task.description}", markup=False)
    disable = not console.is_terminal
    spinner = Progress(SpinnerColumn(), text, TimeElapsedColumn(), console=console, transient=True, disable=disable)
    task = spinner.add_task(title, total=None)
    with spinner:
        yield lambda name, what, share: spinner.update(task, description=f"{title}: {name} {what}")
