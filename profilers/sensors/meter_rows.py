"""Rows of a meter's log become times and watts. Pure.

Commas, semicolons or tabs separate the cells, which may be quoted. Numbers may have a decimal comma
and thousands (``number_cells``), and a unit of watts behind them or in their column's name. The
first cell is the time, in seconds since the epoch or as ISO 8601, perhaps with slashes; without a
zone it is in that of the device. The last row above the first time is the header. Rows without a
time, or with words in place of watts, are skipped, and so is an incomplete last row. A row that may
mean several things is an error that names it.
"""

import csv
import datetime
import math
import re
from typing import List, NamedTuple, Optional, Sequence, Tuple

from profilers import column_units, number_cells
from profilers.file_tree import Unavailable
from profilers.sensors import meter_layout
from profilers.sensors.meter_layout import LogLayout

_ISO = re.compile(r"(\d{4})([-/])(\d\d)\2(\d\d)[T ](\d\d):(\d\d):(\d\d)([.,]\d{1,9})?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII)
#: Two cells that may be one number of thousands, cut at its comma.
_CUT = re.compile(r"[1-9]\d{0,2},\d{3}(\.\d+)?", re.ASCII)

_SEPARATOR = re.compile("[%s]" % number_cells.SEPARATORS)

Samples = Tuple[List[float], List[float]]


class _Row(NamedTuple):
    """number: of its line, from 1 on, or from -1 backwards in the end of a log."""

    number: int
    at_s: Optional[float]
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
    above = above_rows(lines)
    if len(above) == len(lines) > 1:
        return [], []
    header = next((line for line in reversed(above) if _SEPARATOR.search(line)), "")
    separator = number_cells.separator_of(header or lines[min(len(above), len(lines) - 1)])
    names = _cells(header.lstrip("# "), separator) if header else []
    layout = meter_layout.layout(names, column)
    first = len(above) + 1 if is_whole else len(above) - len(lines)
    cells = [_cells(line, separator) for line in lines[len(above) :]]
    rows = [_Row(first + number, seconds(row[0]), row) for number, row in enumerate(cells)]
    timed = [row for row in rows if row.at_s is not None]
    _require_one_layout(rows, layout, column)
    _require_whole_numbers(timed, layout, separator == "," and not _is_sure(names, layout))
    watts = _watts(timed, layout, separator)
    known = sorted((row.at_s or 0.0, value) for row, value in zip(timed, watts) if value is not None)
    return [at_s for at_s, _ in known], [value for _, value in known]


def above_rows(lines: Sequence[str]) -> List[str]:
    """The lines above the first one that begins with a time, whatever separates its cells."""
    first = (number for number, line in enumerate(lines) if _begins_with_time(line))
    return list(lines[: next(first, len(lines))])


def seconds(cell: str) -> Optional[float]:
    """Parse a time into seconds since the epoch; None if it is not a time."""
    match = _ISO.fullmatch(cell)
    if match is None:
        number = number_cells.number(cell, "," if "," in cell else ".")
        return number[0] if number is not None and number[1] == "" and math.isfinite(number[0]) else None
    try:
        year, month, day, hour, minute, second = (int(part) for part in match.group(1, 3, 4, 5, 6, 7))
        moment = datetime.datetime(year, month, day, hour, minute, second, tzinfo=_zone(match.group(9)))
        return moment.timestamp() + float((match.group(8) or "0").replace(",", "."))
    except (ValueError, OverflowError, OSError):
        return None


def _begins_with_time(line: str) -> bool:
    return any(seconds(_cells(line, separator)[0]) is not None for separator in number_cells.SEPARATORS)


def _cells(line: str, separator: str) -> List[str]:
    """The cells of one line, at least one; a quote that is not closed ends with it."""
    try:
        found = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error as error:
        raise Unavailable("the log is no table: %s in %r" % (error, line[:40])) from None
    return [cell.strip() for cell in found] or [""]


def _require_one_layout(rows: Sequence[_Row], layout: LogLayout, column: Optional[str]) -> None:
    """Raises Unavailable for a further header, below rows, that gives the watts another place."""
    for row in rows:
        if row.at_s is not None or len(row.cells) < 2 or any(map(number_cells.is_plausible, row.cells)):
            continue
        try:
            others = meter_layout.layout(row.cells, column)
        except Unavailable as error:
            raise Unavailable("%s: %s" % (row.place, error)) from None
        if others != layout:
            raise Unavailable("%s is a header of other columns; begin a new log there" % row.place)


def _require_whole_numbers(rows: Sequence[_Row], layout: LogLayout, may_be_cut: bool) -> None:
    """Raises Unavailable where a number may lie in two cells, cut at a comma of its own."""
    for row in rows:
        count = len(row.cells)
        if count > 1 and not count - (row.cells[-1] == "") <= layout.columns <= count:
            raise Unavailable(
                "%s has %d cells instead of %d: give the log a header, and put numbers with commas into quotes"
                % (row.place, count, layout.columns)
            )
    pairs = [",".join(row.cells[layout.watts_at : layout.watts_at + 2]) for row in rows if len(row.cells) > 1]
    if may_be_cut and pairs and all(map(_CUT.fullmatch, pairs)):
        raise Unavailable("%s: %s may be one number; put it into quotes" % (rows[0].place, pairs[0]))


def _is_sure(names: Sequence[str], layout: LogLayout) -> bool:
    """Whether what follows the watts is nothing, or numbers of another column."""
    behind = layout.watts_at + 1
    return behind >= layout.columns or meter_layout.holds_numbers(names[behind])


def _watts(rows: Sequence[_Row], layout: LogLayout, separator: str) -> List[Optional[float]]:
    """Raises Unavailable naming the line and the cell that is no number of watts for sure."""
    cells = [row.cells[layout.watts_at] if len(row.cells) > layout.watts_at else "" for row in rows]
    try:
        numbers = number_cells.column(cells, separator)
    except number_cells.CellError as error:
        raise Unavailable("%s: %s" % (rows[error.index].place, error)) from None
    return [None if number is None else _in_watts(row, number, layout) for row, number in zip(rows, numbers)]


def _in_watts(row: _Row, number: number_cells.Number, layout: LogLayout) -> Optional[float]:
    scale = column_units.scale(number[1] or layout.unit, "W")
    if scale is None:
        raise Unavailable("%s: %r is no number of watts" % (row.place, row.cells[layout.watts_at]))
    return number[0] * scale if math.isfinite(number[0]) else None


def _zone(text: Optional[str]) -> Optional[datetime.timezone]:
    """``Z`` or +hh:mm; None stands for the device's own. Raises ValueError beyond a day."""
    if text is None:
        return None
    if text == "Z":
        return datetime.timezone.utc
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return datetime.timezone(datetime.timedelta(minutes=-minutes if text[0] == "-" else minutes))
