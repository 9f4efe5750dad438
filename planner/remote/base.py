"""A remote starts commands on one device and gives access to their standard streams."""

import abc
import time
from collections.abc import Sequence

_CHUNK_BYTES = 1 << 16


class Process(abc.ABC):
    """A running command with its three standard streams; bytes in, bytes out.

    heard_s: when output was last read by ``read_line`` or ``read_exactly``, by the monotonic clock.
    """

    heard_s = 0.0
    _unread = b""

    @abc.abstractmethod
    def write(self, data: bytes) -> None:
        """Write all of ``data`` to its standard input. Raises DeviceLostError when it is gone."""

    @abc.abstractmethod
    def read(self, size: int) -> bytes:
        """Between 1 and ``size`` bytes of its standard output; b"" at its end. Blocks."""

    def read_line(self) -> bytes:
        """The next line of its standard output, without its end. Raises EOFError."""
        while b"\n" not in self._unread:
            self._unread += self._chunk()
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def read_exactly(self, size: int) -> bytes:
        """The next ``size`` bytes of its standard output. Raises EOFError."""
        parts, missing = [self._unread[:size]], size - len(self._unread)
        self._unread = self._unread[size:]
        while missing > 0:
            chunk = self._chunk()
            parts.append(chunk[:missing])
            self._unread = chunk[missing:]
            missing -= len(chunk)
        return b"".join(parts)

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
