"""Rows of a meter's log become times and watts. Pure.

Commas, semicolons or tabs separate the cells, which may be quoted. Numbers may have a decimal comma
and thousands (``number_cells``), and W, kW or mW behind them. The first cell is the time, in
seconds since the epoch or as ISO 8601; without a zone it is in that of the device. A first row
without a time is a header. Rows without a time, or with words in place of watts, are skipped, and
so is an incomplete last row. A row that may mean several things is an error that names it.
"""

import csv
import datetime
import math
import re
from typing import List, NamedTuple, Optional, Sequence, Tuple

from profilers import number_cells
from profilers.file_tree import Unavailable

_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)([.,]\d{1,9})?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII)
WATTS = {"": 1.0, "W": 1.0, "kW": 1e3, "mW": 1e-3}

Samples = Tuple[List[float], List[float]]


class _Row(NamedTuple):
    """number: of its line, from 1 on, or from -1 backwards in the end of a log."""

    number: int
    at_s: float
    cells: List[str]

    @property
    def place(self) -> str:
        return "line %d" % self.number if self.number > 0 else "line %d from the end" % -self.number


def parse(text: str, column: Optional[str] = None, is_whole: bool = True) -> Samples:
    """Parse a log into (seconds since the epoch by the meter's clock, watts), sorted by time.

    column: the header's name of the watts; None: the second one.
    is_whole: whether nothing is left out of the log, so that its lines can be counted.
    Raises Unavailable without the column, and for a row that may mean several things.
    """
    lines = [line.strip("\r\ufeff") for line in text.split("\n")[:-1]]
    if not lines:
        raise Unavailable("the log is empty")
    separator = number_cells.separator_of(lines[0])
    cells = [_cells(line, separator) for line in lines]
    index = _index(cells[0], column)
    times = [seconds(row[0]) for row in cells]
    first = 1 if is_whole else -len(lines)
    rows = [_Row(first + at, at_s, row) for at, (at_s, row) in enumerate(zip(times, cells)) if at_s is not None]
    above = next((number for number, at_s in enumerate(times) if at_s is not None), 0)
    _require_whole_numbers(rows, cells[above - 1] if above else ())
    watts = _watts([row.cells[index] if len(row.cells) > index else "" for row in rows], rows, separator)
    known = sorted((row.at_s, value) for row, value in zip(rows, watts) if value is not None)
    return [at_s for at_s, _ in known], [value for _, value in known]


def seconds(cell: str) -> Optional[float]:
    """Parse a time into seconds since the epoch; None if it is not a time."""
    match = _ISO.fullmatch(cell)
    if match is None:
        return _number(cell.replace(",", "."))
    try:
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        moment = datetime.datetime(year, month, day, hour, minute, second, tzinfo=_zone(match.group(8)))
        return moment.timestamp() + float((match.group(7) or "0").replace(",", "."))
    except (ValueError, OverflowError, OSError):
        return None


def _cells(line: str, separator: str) -> List[str]:
    """The cells of one line, at least one; a quote that is not closed ends with it."""
    try:
        found = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error as error:
        raise Unavailable("the log is no table: %s in %r" % (error, line[:40])) from None
    return [cell.strip() for cell in found] or [""]


def _require_whole_numbers(rows: Sequence[_Row], header: Sequence[str]) -> None:
    """Raises Unavailable where a number may lie in two cells, cut at a comma of its own.

    header: the cells above the first row; of one cell, or none, it is no header.
    """
    columns = len(header) if len(header) > 1 else len(rows[0].cells) if rows else 0
    longer = next((row for row in rows if len(row.cells) > columns), None)
    if longer is not None:
        raise Unavailable(
            "%s has %d cells instead of %d: put numbers with commas into quotes"
            % (longer.place, len(longer.cells), columns)
        )
    if len(header) < 2 and rows and all(_may_be_cut(row.cells) for row in rows):
        cut = ",".join(rows[0].cells[1:3])
        raise Unavailable("%s: %s may be one number; give the log a header" % (rows[0].place, cut))


def _may_be_cut(cells: Sequence[str]) -> bool:
    return len(cells) > 2 and bool(re.fullmatch(r"[1-9]\d{0,2},\d{3}(\.\d+)?", ",".join(cells[1:3]), re.ASCII))


def _watts(cells: Sequence[str], rows: Sequence[_Row], separator: str) -> List[Optional[float]]:
    """Raises Unavailable naming the line and the cell that is no number of watts for sure."""
    try:
        numbers = number_cells.column(cells, separator)
    except number_cells.CellError as error:
        raise Unavailable("%s: %s" % (rows[error.index].place, error)) from None
    for row, cell, number in zip(rows, cells, numbers):
        if number is not None and number[1] not in WATTS:
            raise Unavailable("%s: %r is no number of watts" % (row.place, cell))
    return [
        None if number is None or not math.isfinite(number[0]) else number[0] * WATTS[number[1]] for number in numbers
    ]


def _index(names: Sequence[str], column: Optional[str]) -> int:
    if column is None:
        return 1
    if seconds(names[0]) is not None:
        raise Unavailable("the log has no header, so no column %r" % column)
    lower = [name.lower() for name in names]
    if column.lower() not in lower:
        raise Unavailable("the log has no column %r but %s" % (column, ", ".join(names)))
    return lower.index(column.lower())


def _number(cell: str) -> Optional[float]:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _zone(text: Optional[str]) -> Optional[datetime.timezone]:
    """``Z`` or +hh:mm; None stands for the device's own. Raises ValueError beyond a day."""
    if text is None:
        return None
    if text == "Z":
        return datetime.timezone.utc
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return datetime.timezone(datetime.timedelta(minutes=-minutes if text[0] == "-" else minutes))
