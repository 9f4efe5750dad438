"""A server of samples listens at one address; each device that asks gets its own stream."""

import os
import socket
import stat
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

from backends.streams.record_frames import pack, pack_end
from backends.streams.replay import ReplaySource
from backends.streams.socket_address import parse_address
from backends.streams.socket_source import MOST_LINE_BYTES, read_introduction
from planner.errors import RunError

#: Longest wait between looks whether the server is to end.
TICK_S = 0.2
#: Seconds in which a device must introduce itself, and take what it is sent.
PATIENCE_S = 60.0


class SampleServer:
    """Sends each device the samples of its replay, from the one that it asks for on.

    A stream that is asked for again begins anew there, at its rate. It ends after ``limit`` samples
    of a device, if that is not 0, and with its replay; the server ends when all have, or on
    ``stop``.
    sources: make the replays, by device. sent: samples so far.
    """

    def __init__(
        self,
        address: str,
        sources: Mapping[str, Callable[[], ReplaySource]],
        limit: int,
        stop: threading.Event,
        on_note: Callable[[str], None],
    ) -> None:
        self._text = address
        self._sources = sources
        self._limit = limit
        self._stop = stop
        self._on_note = on_note
        self._lock = threading.Lock()
        self._unfinished = set(sources)
        self.sent = 0
        self._listener = self._listen()

    def _listen(self) -> socket.socket:
        address = parse_address(self._text)
        made = socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET, socket.SOCK_STREAM)
        try:
            if isinstance(address, str):
                with suppress(FileNotFoundError):
                    _require_unused(address)
            else:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen()
        except OSError as error:
            made.close()
            raise RunError(f"cannot listen at {self._text}: {error.strerror or error}; give another address") from error
        made.settimeout(TICK_S)
        return made

    def serve(self) -> int:
        """Serve until all streams have ended, or ``stop``; returns the samples that were sent."""
        try:
            while self._unfinished and not self._stop.is_set():
                with suppress(TimeoutError):
                    connection, _ = self._listener.accept()
                    threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        finally:
            self._listener.close()
            address = parse_address(self._text)
            if isinstance(address, str):
                with suppress(FileNotFoundError):
                    os.unlink(address)
        return self.sent

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(PATIENCE_S)
            try:
                with connection.makefile("rb") as lines:
                    offset, device = read_introduction(lines.readline(MOST_LINE_BYTES))
                if device not in self._sources:
                    raise ValueError(f"{device} is not among the devices: {', '.join(self._sources)}")
                self._on_note(f"{device} asks for samples from {offset:,} on")
                self._send(connection, device, offset)
            except (OSError, ValueError) as error:
                self._on_note(f"a device is gone, or was sent away: {error}")

    def _send(self, connection: socket.socket, device: str, offset: int) -> None:
        source = self._sources[device]()
        source.begin(offset)
        while not self._stop.is_set():
            left = self._limit - offset if self._limit else None
            records = None if left is not None and left <= 0 else source.read(TICK_S)
            if records is None:
                connection.sendall(pack_end(offset))
                self._unfinished.discard(device)
                return
            records = records[:left]
            if records:
                connection.sendall(pack(records))
                offset = records[-1].offset + 1
                with self._lock:
                    self.sent += len(records)


def _require_unused(path: str) -> None:
    """Remove the socket that an ended producer has left.

    Raises OSError where another one listens there, and for a file that is no socket.
    """
    if not stat.S_ISSOCK(os.lstat(path).st_mode):
        raise OSError(None, "there is a file of that name")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
    raise OSError(None, "another producer listens there")
