"""A device reached over SSH."""

import shlex
import threading
from collections.abc import Sequence
from contextlib import ExitStack

import paramiko

from planner.errors import DeviceLostError, RemoteError
from planner.remote.base import Completed, Process, Remote
from planner.remote.drain import LAST_WORDS_S, Drain
from planner.remote.hops import Way
from planner.remote.links import GONE, quietly
from planner.sshconfig import SshTarget

_CHUNK_BYTES = 1 << 16
_ERRORS_BYTES = 1 << 16


class SshRemote(Remote):
    """One login, over which any number of commands run. Connects at once.

    Raises HostKeyError, LoginError or RemoteError, each with its remedy; ``timeout_s`` bounds every
    connect and handshake on the way.
    """

    def __init__(self, name: str, target: SshTarget, timeout_s: float = 15.0) -> None:
        self.name = name
        self._timeout_s = timeout_s
        with ExitStack() as stack:
            transport = Way(name, timeout_s, stack).enter_all((*target.jumps, target))
            assert transport is not None
            self._transport = transport
            self._stack = stack.pop_all()

    def run(self, command: Sequence[str], timeout_s: float = 30.0) -> Completed:
        channel = self._open(command)
        expired = threading.Event()

        def give_up() -> None:
            expired.set()
            quietly(channel.close)

        timer = threading.Timer(timeout_s, give_up)
        timer.daemon = True
        timer.start()
        try:
            stdout, stderr, code = _converse(channel)
        except GONE:
            stdout, stderr, code = b"", b"", -1
        finally:
            timer.cancel()
            quietly(channel.close)
        if expired.is_set():
            raise DeviceLostError(f"{self.name}: {command[0]} did not end within {timeout_s:g} s")
        if code == -1 and not (channel.eof_received and self._transport.is_active()):
            raise _lost(self.name, self._transport)
        return Completed(code, stdout, stderr)

    def spawn(self, command: Sequence[str]) -> "SshProcess":
        return SshProcess(self.name, self._open(command), self._transport)

    def close(self) -> None:
        self._stack.close()

    def _open(self, command: Sequence[str]) -> paramiko.Channel:
        try:
            channel = self._transport.open_session(timeout=self._timeout_s)
            channel.exec_command(shlex.join(command))
        except paramiko.ChannelException as error:
            raise RemoteError(
                f"{self.name}: sshd opens no further session ({error}); raise MaxSessions in its sshd_config"
            ) from error
        except GONE as error:
            if not (isinstance(error, paramiko.SSHException) and self._transport.is_active()):
                raise _lost(self.name, self._transport) from error
            raise RemoteError(
                f"{self.name}: sshd does not run commands ({error}); does it force one for this key?"
            ) from error
        return channel


class SshProcess(Process):
    """A running command on a device, which goes on after ``close`` until it reads the end of its input."""

    def __init__(self, name: str, channel: paramiko.Channel, transport: paramiko.Transport) -> None:
        self._name = name
        self._channel = channel
        self._transport = transport
        self._closed = False
        self._stderr = Drain(channel.recv_stderr, _ERRORS_BYTES)

    def write(self, data: bytes) -> None:
        try:
            for start in range(0, len(data), _CHUNK_BYTES):  # sendall copies the rest after every packet
                self._channel.sendall(data[start : start + _CHUNK_BYTES])
        except GONE as error:
            if self._lost():
                raise _lost(self._name, self._transport) from error
            raise DeviceLostError(f"{self._name}: the process there has ended") from error

    def read(self, size: int) -> bytes:
        """As in Process; raises DeviceLostError where the stream ends because the connection did."""
        try:
            data = self._channel.recv(size)
        except GONE as error:
            raise _lost(self._name, self._transport) from error
        if data:
            return data
        if self._lost():
            raise _lost(self._name, self._transport)
        self._stderr.join(LAST_WORDS_S)
        return b""

    def errors(self) -> bytes:
        return self._stderr.bytes()

    def close(self) -> None:
        self._closed = True
        quietly(self._channel.close)

    def _lost(self) -> bool:
        """Why a stream ended: a process that ends says so, by the end of its output or its exit status."""
        return not (self._closed or self._channel.eof_received or self._channel.exit_status != -1)


def _converse(channel: paramiko.Channel) -> tuple[bytes, bytes, int]:
    """All output of a command that gets no input, and its exit status, -1 if there is none."""
    channel.shutdown_write()
    errors = Drain(channel.recv_stderr)
    output = bytearray()
    while chunk := channel.recv(_CHUNK_BYTES):
        output += chunk
    errors.join()
    return bytes(output), errors.bytes(), channel.recv_exit_status()


def _lost(name: str, transport: paramiko.Transport) -> DeviceLostError:
    reason = transport.get_exception()
    why = f" ({reason})" if reason is not None and str(reason) else ""
    return DeviceLostError(
        f"{name}: the connection was lost{why}; check its power and its network, then run again"
    )
