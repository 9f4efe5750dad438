"""A remote starts commands on one device and gives access to their standard streams."""

import abc
import time
from collections.abc import Iterator, Sequence

from planner.errors import DeviceLostError

_CHUNK_BYTES = 1 << 16
#: No line of an agent comes near it; who sends more would fill this machine's memory.
MOST_LINE_BYTES = 1 << 24


class Process(abc.ABC):
    """A running command with its three standard streams; bytes in, bytes out.

    heard_s: when output was last read by ``read_line`` or ``pieces``, by the monotonic clock.
    closed: whether ``close`` was called.
    """

    heard_s = 0.0
    closed = False

    def __init__(self, name: str) -> None:
        self._name = name  # of the device
        self._unread = bytearray()

    @abc.abstractmethod
    def write(self, data: bytes) -> None:
        """Write all of ``data`` to its standard input. Raises DeviceLostError when it is gone."""

    @abc.abstractmethod
    def read(self, size: int) -> bytes:
        """Between 1 and ``size`` bytes of its standard output; b"" at its end. Blocks."""

    def read_line(self) -> bytes:
        """The next line of its standard output, without its end.

        Raises EOFError, and DeviceLostError for a line that does not end.
        """
        seen = 0
        while (end := self._unread.find(b"\n", seen)) < 0:
            seen = len(self._unread)
            if seen > MOST_LINE_BYTES:
                raise DeviceLostError(f"{self._name}: a line of more than {MOST_LINE_BYTES >> 20} MiB came from there")
            self._unread += self._chunk()
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def pieces(self, size: int) -> Iterator[bytes]:
        """The next ``size`` bytes of its standard output, as they come. Raises EOFError."""
        while size > 0:
            if not self._unread:
                self._unread += self._chunk()
            piece = bytes(self._unread[:size])
            del self._unread[:size]
            size -= len(piece)
            yield piece

    def _chunk(self) -> bytes:
        chunk = self.read(_CHUNK_BYTES)
        if not chunk:
            raise EOFError
        self.heard_s = time.monotonic()
        return chunk

    @abc.abstractmethod
    def errors(self) -> bytes:
        """Its standard error so far (the last 64 KiB). Never blocks."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close its standard input and output; a local process is also waited for, then killed.

        Threads that are blocked in ``read`` or ``write`` return.
        """


class Remote(abc.ABC):
    """A way to run commands on one device."""

    name: str

    @abc.abstractmethod
    def spawn(self, command: Sequence[str]) -> Process:
        """Start a command and keep its streams open. Raises RemoteError."""

    @abc.abstractmethod
    def close(self) -> None:
        """Close the connection. Idempotent."""
