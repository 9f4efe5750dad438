"""Benchmarks print ratios with their spread, for people or as JSON."""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

#: Wide enough for every table, also where output is no terminal.
WIDTH = 120


class Spread(NamedTuple):
    """Repeated values of one quantity."""

    min: float
    median: float
    max: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """The spread of at least one value."""
        found = sorted(values)
        return cls(found[0], statistics.median(found), found[-1])

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.min:.3g} to {self.max:.3g})"


def parser(description: str | None) -> argparse.ArgumentParser:
    """A command line with ``--json``."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return made


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects in a file of JSON lines; none where there is no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def show(title: str, rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print rows of equal keys, with the machine's load: what else runs is part of every result."""
    load = os.getloadavg()[0]
    if as_json:
        plain = [{key: _plain(value) for key, value in row.items()} for row in rows]
        print(json.dumps({"benchmark": title, "cores": os.cpu_count(), "load": load, "rows": plain}))
        return
    table = Table(title=f"{title}; {os.cpu_count()} cores, load {load:.1f}", title_justify="left")
    for key in rows[0]:
        table.add_column(key)
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    Console(width=WIDTH).print(table)


def _plain(value: Any) -> Any:
    return value._asdict() if isinstance(value, Spread) else value


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def mean_seconds(work: Callable[[], Any], calls: int) -> float:
    """Of so many calls, one after the other."""
    began = time.perf_counter()
    for _ in range(calls):
        work()
    return (time.perf_counter() - began) / calls
