"""A drain reads a stream to its end in the background, so that its writer never blocks."""

import builtins
import logging
import threading
from collections.abc import Callable

_CHUNK_BYTES = 1 << 15
#: Seconds to wait for the rest of standard error after standard output has ended.
LAST_WORDS_S = 0.5
#: Logs each line that a device writes to standard error, for --verbose.
OUTPUT = logging.getLogger("planner.devices")


class Drain:
    """Keeps the last ``limit`` bytes of a stream, and logs them line by line.

    read: size -> up to that many bytes, b"" at the end. An error of a closed stream counts as its
    end.
    """

    def __init__(self, device: str, read: Callable[[int], bytes], limit: int) -> None:
        self._device = device
        self._read = read
        self._limit = limit
        self._unfinished_line = b""
        self._kept = bytearray()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="drain", daemon=True)
        self._thread.start()

    def bytes(self) -> bytes:
        """The bytes kept so far. Never blocks."""
        with self._lock:
            return bytes(self._kept)

    def join(self, timeout_s: float) -> None:
        """Wait for the stream's end, for ``timeout_s`` at most."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while True:
            try:
                chunk = self._read(_CHUNK_BYTES)
            except (OSError, ValueError, EOFError):
                return
            if not chunk:
                return
            self._log(chunk)
            with self._lock:
                self._kept += chunk
                if len(self._kept) > self._limit:
                    del self._kept[: -self._limit]

    def _log(self, chunk: "builtins.bytes") -> None:
        *lines, rest = (self._unfinished_line + chunk).split(b"\n")
        self._unfinished_line = rest[-self._limit :]
        for line in lines:
            OUTPUT.debug("%s: %s", self._device, line.decode(errors="replace").rstrip())
