"""A remote starts commands on one device and gives access to their standard streams."""

import abc
from collections.abc import Sequence


class Process(abc.ABC):
    """A running command with its three standard streams; bytes in, bytes out."""

    @abc.abstractmethod
    def write(self, data: bytes) -> None:
        """Write all of ``data`` to its standard input. Raises DeviceLostError when it is gone."""

    @abc.abstractmethod
    def read(self, size: int) -> bytes:
        """Between 1 and ``size`` bytes of its standard output; b"" at its end. Blocks."""

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
