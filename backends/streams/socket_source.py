"""A socket over which a producer sends samples, on this machine or in a network that is trusted.

The device connects, and sends one line: the number of the first sample that it wants, and its name.
The producer answers with records (``record_frames``).
"""

import socket
from typing import List, Optional, Tuple

from backends.streams.record_frames import FrameReader
from backends.streams.socket_address import parse_address
from backends.streams.source import SampleSource, StreamRecord

#: Seconds in which a connection must be made.
CONNECT_S = 10.0
_CHUNK_BYTES = 1 << 18
#: Most bytes of the line with which a device introduces itself.
MOST_LINE_BYTES = 1024


def introduction(offset: int, device: str) -> bytes:
    """The line with which a device asks for samples."""
    return ("%d %s\n" % (offset, device)).encode()


def read_introduction(line: bytes) -> Tuple[int, str]:
    """The offset and the device of such a line. Raises ValueError for any other."""
    offset, _, device = line.decode("utf-8", "replace").rstrip("\n").partition(" ")
    if not offset.isdigit() or not device or not line.endswith(b"\n"):
        raise ValueError("a device introduces itself by OFFSET NAME and the end of a line, not by %r" % line[:60])
    return int(offset), device


class SocketSource(SampleSource):
    """The samples that a producer sends; after a break they go on behind the last that arrived."""

    def __init__(self, address: str, device: str) -> None:
        self._text = address
        self._address = parse_address(address)
        self._device = device
        self._offset = 0
        self._connection: Optional[socket.socket] = None
        self._reader = FrameReader()
        self._is_closed = False

    def begin(self, offset: int) -> None:
        self._offset = offset

    def read(self, wait_s: float) -> Optional[List[StreamRecord]]:
        if self._reader.ended:
            return None
        try:
            return self._received(wait_s)
        except socket.timeout:
            return []
        except (OSError, ValueError) as error:
            self._disconnect()
            raise OSError("%s: %s" % (self._text, error)) from error

    def _received(self, wait_s: float) -> List[StreamRecord]:
        connection = self._connection or self._connect()
        connection.settimeout(max(wait_s, 1e-3))
        content = connection.recv(_CHUNK_BYTES)
        if not content:
            raise OSError("the producer has closed the connection")
        found = [each for each in self._reader.add(content) if each.offset >= self._offset]
        if found:
            self._offset = found[-1].offset + 1
        return found

    def _connect(self) -> socket.socket:
        if self._is_closed:
            raise OSError("it is closed")
        is_path = isinstance(self._address, str)
        made = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET, socket.SOCK_STREAM)
        try:
            made.settimeout(CONNECT_S)
            try:
                made.connect(self._address)
            except socket.timeout:
                raise OSError("nobody answers within %.0f s" % CONNECT_S) from None
            made.sendall(introduction(self._offset, self._device))
        except OSError:
            made.close()
            raise
        self._connection, self._reader = made, FrameReader()
        return made

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def commit(self, offset: int) -> None:
        """Nobody asks how far a device is."""

    def close(self) -> None:
        self._is_closed = True
        self._disconnect()
