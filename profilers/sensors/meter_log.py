"""This module reads the log of a meter, whose rows are aligned by the wall clock.

Its text is UTF-8 or UTF-16. ``meter_rows`` says what rows look like.
"""

import math
import os
import time
from typing import IO, Optional, Tuple

from profilers import text_files
from profilers.file_tree import Unavailable
from profilers.regular_file import open_regular
from profilers.sensors.base import METER_PREFIX, Sensor
from profilers.sensors.meter_rows import Samples, above_rows, parse

#: Largest age of the newest row of a log in use.
FRESH_S = 60.0
#: Bytes read from the end of a log: for its newest row, and at most for a window (days of rows).
ROW_BYTES = 4096
WINDOW_BYTES = 16 * 1024 * 1024
#: Bytes of UTF-8 within a character.
_CONTINUING = bytes(range(0x80, 0xC0))


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
            times_s, watts = self._rows(limit_bytes, size_bytes)
            begins = len(times_s) > 1 and times_s[1] <= begin_s  # the first may be the file's, far from the others
            if begins or limit_bytes >= min(size_bytes, WINDOW_BYTES):
                return times_s, watts
            limit_bytes = min(4 * limit_bytes, WINDOW_BYTES)

    def _newest(self) -> Tuple[float, float]:
        """The newest row, parsed again only after the file has changed. Raises Unavailable."""
        changed = version(self._path)
        if self._version != changed or self._row is None:
            times_s, watts = self._rows(ROW_BYTES, changed[0])
            if not times_s:
                raise Unavailable(
                    "%s has no row of watts that begins with a time, in seconds since 1970 or as 2026-01-31 12:00:00"
                    % self._path
                )
            self._version, self._row = changed, (times_s[-1], watts[-1])
        return self._row

    def _rows(self, limit_bytes: int, size_bytes: int) -> Samples:
        try:
            return parse(tail(self._path, limit_bytes), self._column, size_bytes <= limit_bytes)
        except Unavailable as error:
            raise Unavailable("%s: %s" % (self._path, error)) from None


def version(path: str) -> Tuple[int, int]:
    """Size and modification time of a file. Raises Unavailable."""
    try:
        state = os.stat(path)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    return state.st_size, state.st_mtime_ns


def tail(path: str, limit_bytes: int) -> str:
    """What is above the first row of a file, and the whole lines in its last bytes.

    Raises Unavailable.
    """
    try:
        with open_regular(path) as file:
            return _tail(file, path, limit_bytes)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def _tail(file: IO[bytes], path: str, limit_bytes: int) -> str:
    head = file.read(ROW_BYTES)
    encoding, mark_bytes = text_files.encoding_of(head)
    unit = len("\n".encode(encoding))
    skipped = os.fstat(file.fileno()).st_size - limit_bytes
    start = max(mark_bytes, skipped + -skipped % unit)
    file.seek(start)
    text = _decoded(file.read(limit_bytes), path, encoding, start)
    if start == mark_bytes:
        return text
    above = above_rows(_decoded(head[mark_bytes:], path, encoding, mark_bytes).split("\n")[:-1])
    return "\n".join(above + text.split("\n")[1:])


def _decoded(content: bytes, path: str, encoding: str, start: int) -> str:
    """The whole lines of a part of a file from byte ``start`` on, perhaps within a character."""
    unit = len("\n".encode(encoding))
    if unit > 1:
        return text_files.decode(content[: len(content) - len(content) % unit], path, encoding, start)
    inside = len(content[:3]) - len(content[:3].lstrip(_CONTINUING)) if start else 0
    return text_files.decode(content[inside : content.rfind(b"\n") + 1], path, encoding, start + inside)


def _unreadable(path: str, error: Exception) -> Unavailable:
    """The reason of a failed read; a path that no file system can have is a ValueError."""
    return Unavailable("%s cannot be read: %s" % (path, getattr(error, "strerror", None) or error))
