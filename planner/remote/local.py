"""The local remote runs commands on this machine."""

import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, TypeVar

from backends.agent.guardian import END_S, GONE_S
from planner.errors import DeviceLostError
from planner.remote.base import Process, Remote
from planner.remote.drain import LAST_WORDS_S, Drain

#: Seconds that a process may take to end by itself after its input has closed: an agent's guardian
#: kills what has not ended before (``guardian``).
_CLOSE_S = END_S + GONE_S + 1.0
_ERRORS_BYTES = 1 << 16

Spawned = TypeVar("Spawned", bound="LocalProcess")


class LocalRemote(Remote):
    """Runs commands as local processes, each in its own session, which Ctrl-C does not reach."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._processes: list[LocalProcess] = []

    def spawn(self, command: Sequence[str]) -> "LocalProcess":
        return self._keep(LocalProcess(self.name, command))

    def _keep(self, process: Spawned) -> Spawned:
        """To be closed with this remote."""
        self._processes = [*(each for each in self._processes if not each.closed), process]
        return process

    def close(self) -> None:
        while self._processes:
            self._processes.pop().close()


class Pipe:
    """One end of a pipe that is not closed while another thread uses it.

    The system gives the number of a closed descriptor to the next pipe, so that a thread on its way
    into a read or write would take the bytes of another process.
    """

    def __init__(self, stream: IO[bytes] | None) -> None:
        assert stream is not None
        self._stream = stream
        self._in_use = threading.Lock()

    def read(self, size: int) -> bytes:
        """Between 1 and ``size`` bytes; b"" at the end or once it is closed. Blocks."""
        with self._in_use:
            return b"" if self._stream.closed else self._stream.read(size)

    def write(self, data: memoryview) -> int:
        """The number of bytes written. Raises OSError, or ValueError once it is closed."""
        with self._in_use:
            return self._stream.write(data)

    def close(self, timeout_s: float) -> bool:
        """Close it; False where another thread still uses it after ``timeout_s``. Idempotent."""
        if not self._in_use.acquire(timeout=timeout_s):
            return False
        with suppress(OSError):
            self._stream.close()
        self._in_use.release()
        return True


class LocalProcess(Process):
    """A running command on this machine."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        super().__init__(name)
        # Through env(1), a missing command ends with 127 and a message, as over SSH.
        self._popen = subprocess.Popen(
            ["env", "--", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            bufsize=0, start_new_session=True,
        )  # fmt: skip
        streams = (self._popen.stdin, self._popen.stdout, self._popen.stderr)
        self._input, self._output, errors = self._pipes = tuple(map(Pipe, streams))
        self._errors = Drain(name, errors.read, _ERRORS_BYTES)
        self._closing = threading.Lock()

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._input.write(rest) :]
        except (OSError, ValueError) as error:
            raise DeviceLostError(f"{self._name}: the process there has ended") from error

    def read(self, size: int) -> bytes:
        data = self._output.read(size)
        if not data:
            self._errors.join(LAST_WORDS_S)
        return data

    def errors(self) -> bytes:
        return self._errors.bytes()

    def close(self) -> None:
        with self._closing:  # whoever comes second also returns when the process has ended
            if self.closed:
                return
            self.closed = True
            with suppress(subprocess.TimeoutExpired):
                if self._input.close(_CLOSE_S):
                    self._popen.wait(_CLOSE_S)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)  # its children too
            self._popen.wait()
            self._errors.join(_CLOSE_S)
            for pipe in self._pipes:
                pipe.close(_CLOSE_S)
