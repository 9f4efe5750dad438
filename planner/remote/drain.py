"""Reading a stream to its end in the background, so that who writes to it never has to wait."""

import threading
from collections.abc import Callable

_CHUNK_BYTES = 1 << 15

#: How long the end of standard output may wait for the last words on standard error, in seconds.
LAST_WORDS_S = 0.5


class Drain:
    """Keeps the last ``limit`` bytes that ``read`` gives.

    read: size -> up to that many bytes, b"" at the end; an error that says that it is gone counts as the end.
    """

    def __init__(self, read: Callable[[int], bytes], limit: int) -> None:
        self._read = read
        self._limit = limit
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
            with self._lock:
                self._kept += chunk
                if len(self._kept) > self._limit:
                    del self._kept[: -self._limit]
