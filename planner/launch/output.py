"""A rank prints in pieces, which are shown in whole lines."""

import re

OUT, ERR = "out", "err"
STREAMS = (OUT, ERR)
#: Of a line without an end, no more than this is kept back.
LONGEST = 1 << 16
#: How an uncaught exception of Python begins.
TRACEBACK = "Traceback (most recent call last)"
#: torch.distributed puts a prefix before each line of an exception.
_FILE = re.compile(r'^((?:\[rank\d+\]:)?\s*File ")([^"]+)(", line \d+)')
_PREFIX = re.compile(r"^\[rank\d+\]: ?")


class LineSplitter:
    """Puts the pieces of one stream together.

    Of a line that is written over with carriage returns, as by a progress bar, the last state
    counts.
    """

    def __init__(self) -> None:
        self._rest = ""

    def add(self, text: str) -> list[str]:
        """The lines that end in this piece."""
        *lines, self._rest = (self._rest + text).split("\n")
        if len(self._rest) > LONGEST:
            lines.append(self._rest)
            self._rest = ""
        elif "\r" in self._rest[:-1]:
            self._rest = _last_state(self._rest)
        return [_last_state(line) for line in lines]

    def end(self) -> list[str]:
        """The line that had no end, if there is one."""
        rest, self._rest = _last_state(self._rest), ""
        return [rest] if rest else []


class LastError:
    """What a rank's standard error says last: its last exception, else its last line."""

    def __init__(self) -> None:
        self._line = self._exception = ""
        self._in_traceback = False

    def add(self, line: str) -> None:
        text = _PREFIX.sub("", line)
        if TRACEBACK in text:
            self._in_traceback = True
        elif self._in_traceback and text[:1].strip():
            self._exception, self._in_traceback = text.strip(), False
        self._line = text.strip() or self._line

    @property
    def text(self) -> str:
        return self._exception or self._line


class RankOutput:
    """Puts together what one rank prints.

    there, here: the project's folder on its device, and on this machine.
    errors: what its standard error says last.
    """

    def __init__(self, there: str, here: str) -> None:
        self.errors = LastError()
        self._there, self._here = there, here
        self._splitters = {stream: LineSplitter() for stream in STREAMS}

    def add(self, stream: str, text: str) -> list[str]:
        """The lines of a stream that end in this piece."""
        return self._shown(stream, self._splitters[stream].add(text))

    def end(self, stream: str) -> list[str]:
        """The line of a stream that had no end, if there is one."""
        return self._shown(stream, self._splitters[stream].end())

    def _shown(self, stream: str, lines: list[str]) -> list[str]:
        for line in lines if stream == ERR else ():
            self.errors.add(line)
        return [with_own_paths(line, self._there, self._here) for line in lines]


def with_own_paths(line: str, there: str, here: str) -> str:
    """A line of a traceback with the user's own file in place of its copy on a device.

    there, here: the project's folder on the device, and on this machine.
    """
    match = _FILE.match(line)
    if match is None or not match[2].startswith(f"{there}/"):
        return line
    return f"{match[1]}{here}{match[2].removeprefix(there)}{match[3]}{line[match.end() :]}"


def _last_state(line: str) -> str:
    """What a terminal would show of a line, where each state is as long as the one before."""
    kept = line.rstrip("\r")
    return kept.rpartition("\r")[2]
