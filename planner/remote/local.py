"""The local remote runs commands on this machine."""

import os
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from planner.errors import DeviceLostError
from planner.remote.base import Process, Remote
from planner.remote.drain import LAST_WORDS_S, Drain

#: Seconds that a process may take to end by itself after its input has closed.
_CLOSE_S = 3.0
_ERRORS_BYTES = 1 << 16


class LocalRemote(Remote):
    """Runs commands as local processes, each in its own session, which Ctrl-C does not reach."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._processes: list[LocalProcess] = []

    def spawn(self, command: Sequence[str]) -> "LocalProcess":
        process = LocalProcess(self.name, command)
        self._processes.append(process)
        return process

    def close(self) -> None:
        while self._processes:
            self._processes.pop().close()


class LocalProcess(Process):
    """A running command on this machine."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self._name = name
        # Through env(1), a missing command ends with 127 and a message, as over SSH.
        self._popen = subprocess.Popen(
            ["env", "--", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            bufsize=0, start_new_session=True,
        )  # fmt: skip
        self._closed = False
        self._closing = threading.Lock()
        self._stderr = Drain(name, _stream(self._popen.stderr).read, _ERRORS_BYTES)

    def write(self, data: bytes) -> None:
        stdin = _stream(self._popen.stdin)
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[stdin.write(rest) :]
        except (OSError, ValueError) as error:
            raise DeviceLostError(f"{self._name}: the process there has ended") from error

    def read(self, size: int) -> bytes:
        try:
            data = _stream(self._popen.stdout).read(size)
        except ValueError:  # closed
            return b""
        if not data:
            self._stderr.join(LAST_WORDS_S)
        return data

    def errors(self) -> bytes:
        return self._stderr.bytes()

    def close(self) -> None:
        with self._closing:  # whoever comes second also returns when the process has ended
            if self._closed:
                return
            self._closed = True
            with suppress(OSError):
                _stream(self._popen.stdin).close()
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(_CLOSE_S)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)  # its children too
            self._popen.wait()
            self._stderr.join(_CLOSE_S)
            _stream(self._popen.stdout).close()
            _stream(self._popen.stderr).close()


def _stream(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
