"""A stream is read to its end in the background, so that its writer never has to wait."""

import builtins
import logging
import threading
from collections.abc import Callable

_CHUNK_BYTES = 1 << 15

#: How long the end of standard output may wait for the last words on standard error, in seconds.
LAST_WORDS_S = 0.5


#: Gets each line that a device writes to standard error, for --verbose.
OUTPUT = logging.getLogger("planner.devices")


class Drain:
    """Keeps the last ``limit`` bytes that ``read`` gives, and logs them line by line.

    read: size -> up to that many bytes, b"" at the end; an error that says that it is gone counts
    as the end.
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
        """What has come so far. Never blocks."""
        with self._lock:
            return bytes(self._kept)

    def join(self, timeout_s: float) -> None:
        """Wait for the stream's end, but not longer."""
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
