"""This module reads the log of a meter: rows of time and watts, aligned by the wall clock.

Commas, semicolons or tabs separate the cells; with the latter two, numbers may have a decimal
comma. The first cell is the time, in seconds since the epoch or as ISO 8601; without a zone it is
in that of the device. A first row without a time is a header. Other rows that do not parse are
skipped, and so is an incomplete last row.
"""

import datetime
import math
import os
import re
import time
from typing import List, Optional, Tuple

from profilers.file_tree import Unavailable
from profilers.sensors.base import METER_PREFIX, Sensor

#: Largest age of the newest row of a log in use.
FRESH_S = 60.0
#: Bytes read from the end of a log: for its newest row, and at most for a window (days of rows).
ROW_BYTES = 4096
WINDOW_BYTES = 16 * 1024 * 1024

_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(\.\d{1,9})?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII)

Samples = Tuple[List[float], List[float]]


def parse(text: str, column: Optional[str] = None) -> Samples:
    """Parse a log into (seconds since the epoch by the meter's clock, watts), sorted by time.

    column: the header's name of the watts; None: the second one. Raises Unavailable without it.
    """
    lines = [line.strip("\r\ufeff") for line in text.split("\n")[:-1]]
    if not lines:
        raise Unavailable("the log is empty")
    separator = next((mark for mark in "\t;" if mark in lines[0]), ",")
    rows = [[cell.strip().strip('"') for cell in line.split(separator)] for line in lines]
    index = _index(rows[0], column)
    samples = [_sample(row, index, separator) for row in rows]
    known = sorted(sample for sample in samples if sample is not None)
    return [at_s for at_s, _ in known], [watts for _, watts in known]


def seconds(cell: str) -> Optional[float]:
    """Parse a time into seconds since the epoch; None if it is not a time."""
    match = _ISO.fullmatch(cell)
    if match is None:
        return _number(cell)
    try:
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        moment = datetime.datetime(year, month, day, hour, minute, second, tzinfo=_zone(match.group(8)))
        return moment.timestamp() + float(match.group(7) or 0.0)
    except (ValueError, OverflowError, OSError):
        return None


class MeterLog(Sensor):
    """Watts from a log. offset_s: seconds by which the meter's clock is ahead of the device's."""

    whole_watts_limit_s = math.inf  # many meters resolve a watt only

    def __init__(self, path: str, column: Optional[str], offset_s: float) -> None:
        name = METER_PREFIX + "csv:" + path + ("#" + column if column else "")
        super().__init__(name, "wall", self._newest_watts)
        self._path = path
        self._column = column
        self._offset_s = offset_s
        self._version = (0, 0)
        self._row: Optional[Tuple[float, float]] = None

    def _newest_watts(self) -> float:
        """Watts of the newest row. Raises Unavailable beyond FRESH_S from now."""
        at_s, watts = self._newest()
        age_s = time.time() - (at_s - self._offset_s)
        if abs(age_s) > FRESH_S:
            side = "behind" if age_s > 0 else "ahead of"
            raise Unavailable("the newest row of %s is %.0f s %s this device's clock" % (self._path, abs(age_s), side))
        return watts

    def history(self, begin_s: float, end_s: float) -> Samples:
        """The rows between two monotonic times; none where the log cannot be read (see ``read``).

        Rows that the program writes later are missing at the end.
        """
        try:
            shift_s = time.monotonic() - time.time() - self._offset_s
            times_s, watts = self._since(begin_s - shift_s)
        except Unavailable:
            return [], []
        inside = [(at_s + shift_s, value) for at_s, value in zip(times_s, watts) if begin_s <= at_s + shift_s <= end_s]
        return [at_s for at_s, _ in inside], [value for _, value in inside]

    def _since(self, begin_s: float) -> Samples:
        """The rows since a time of the meter's clock, and some before. Raises Unavailable."""
        size_bytes, _ = version(self._path)
        limit_bytes = min(ROW_BYTES, WINDOW_BYTES)
        while True:
            times_s, watts = parse(tail(self._path, limit_bytes), self._column)
            begins = len(times_s) > 1 and times_s[1] <= begin_s  # the first may be the file's, far from the others
            if begins or limit_bytes >= min(size_bytes, WINDOW_BYTES):
                return times_s, watts
            limit_bytes = min(4 * limit_bytes, WINDOW_BYTES)

    def _newest(self) -> Tuple[float, float]:
        """The newest row, parsed again only after the file has changed. Raises Unavailable."""
        changed = version(self._path)
        if self._version != changed or self._row is None:
            times_s, watts = parse(tail(self._path, ROW_BYTES), self._column)
            if not times_s:
                raise Unavailable("%s has no row of time and watts" % self._path)
            self._version, self._row = changed, (times_s[-1], watts[-1])
        return self._row


def version(path: str) -> Tuple[int, int]:
    """Size and modification time of a file. Raises Unavailable."""
    try:
        state = os.stat(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    return state.st_size, state.st_mtime_ns


def tail(path: str, limit_bytes: int) -> str:
    """The first line of a file, and the whole lines in its last bytes. Raises Unavailable."""
    try:
        with open(path, "rb") as file:
            first = file.readline(ROW_BYTES)
            skipped = os.fstat(file.fileno()).st_size - limit_bytes
            if skipped > file.tell():
                file.seek(skipped)
                file.readline(ROW_BYTES)
            return (first + file.read(limit_bytes)).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str, error: Exception) -> Unavailable:
    """The reason of a failed read; a path that no file system can have is a ValueError."""
    return Unavailable("%s cannot be read: %s" % (path, getattr(error, "strerror", None) or error))


def _index(names: List[str], column: Optional[str]) -> int:
    if column is None:
        return 1
    if seconds(names[0]) is not None:
        raise Unavailable("the log has no header, so no column %r" % column)
    lower = [name.lower() for name in names]
    if column.lower() not in lower:
        raise Unavailable("the log has no column %r but %s" % (column, ", ".join(names)))
    return lower.index(column.lower())


def _sample(row: List[str], index: int, separator: str) -> Optional[Tuple[float, float]]:
    if len(row) <= index:
        return None
    decimal = "," if separator == "," else "."
    at_s, watts = (seconds(cell) for cell in (row[0].replace(",", decimal), row[index].replace(",", decimal)))
    return None if at_s is None or watts is None else (at_s, watts)


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
