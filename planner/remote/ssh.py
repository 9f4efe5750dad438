"""The SSH remote runs commands on a device over one connection."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import paramiko

from planner.errors import DeviceLostError, RemoteError
from planner.remote.base import Process, Remote
from planner.remote.drain import LAST_WORDS_S, Drain
from planner.remote.quoting import command_line
from planner.remote.ssh_config import SshTarget
from planner.remote.ssh_login import Login
from planner.remote.ssh_transport import GONE, quietly

_CHUNK_BYTES = 1 << 16
_ERRORS_BYTES = 1 << 16
#: Seconds that sending a channel's close message may take.
_CLOSE_S = 5.0


class SshRemote(Remote):
    """One login, which connects at once and runs any number of commands.

    timeout_s: bounds every connect and handshake of the login.
    Raises HostKeyError, LoginError or RemoteError, each with its remedy.
    """

    def __init__(self, name: str, target: SshTarget, timeout_s: float = 15.0) -> None:
        self.name = name
        self._timeout_s = timeout_s
        with ExitStack() as stack:
            transport = Login(name, timeout_s, stack).pass_hosts((*target.jumps, target))
            assert transport is not None
            self._transport = transport
            self._stack = stack.pop_all()

    def spawn(self, command: Sequence[str]) -> "SshProcess":
        return SshProcess(self.name, self._open(command), self._transport)

    def close(self) -> None:
        self._stack.close()

    def _open(self, command: Sequence[str]) -> paramiko.Channel:
        transport, began_s = self._transport, time.monotonic()
        try:
            channel = transport.open_session(timeout=self._timeout_s)
            with _limited(self._timeout_s, lambda: _hang_up(channel, transport)):
                channel.exec_command(command_line(command))
        except paramiko.ChannelException as error:
            raise RemoteError(
                f"{self.name}: sshd opens no further session ({error}); raise MaxSessions in its sshd_config"
            ) from error
        except GONE as error:
            if not (isinstance(error, paramiko.SSHException) and transport.is_active()):
                raise _lost(self.name, transport) from error
            if time.monotonic() - began_s >= self._timeout_s:
                raise DeviceLostError(
                    f"{self.name}: sshd did not start a command within {self._timeout_s:g} s; is the device overloaded?"
                ) from error
            raise RemoteError(
                f"{self.name}: sshd does not run commands ({error}); does it force one for this key?"
            ) from error
        return channel


class SshProcess(Process):
    """A running command on a device. After ``close``, its end of input tells it to end."""

    def __init__(self, name: str, channel: paramiko.Channel, transport: paramiko.Transport) -> None:
        super().__init__(name)
        self._channel = channel
        self._transport = transport
        self._stderr = Drain(name, channel.recv_stderr, _ERRORS_BYTES)

    def write(self, data: bytes) -> None:
        try:
            for start in range(0, len(data), _CHUNK_BYTES):  # sendall copies the rest after every packet
                self._channel.sendall(data[start : start + _CHUNK_BYTES])
        except GONE as error:
            if self._lost():
                raise _lost(self._name, self._transport) from error
            raise DeviceLostError(f"{self._name}: the process there has ended") from error

    def read(self, size: int) -> bytes:
        """See Process. Raises DeviceLostError where the connection was lost."""
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
        self.closed = True
        _hang_up(self._channel, self._transport)

    def _lost(self) -> bool:
        """Whether a stream ended by a lost connection, and not by the end of the process."""
        return not (self.closed or self._channel.eof_received or self._channel.exit_status != -1)


def _hang_up(channel: paramiko.Channel, transport: paramiko.Transport) -> None:
    """Close a channel, or after a time limit the connection, which wakes blocked readers."""
    with _limited(_CLOSE_S, transport.close):
        quietly(channel.close)


@contextmanager
def _limited(seconds: float, give_up: Callable[[], None]) -> Iterator[None]:
    """Call ``give_up`` from another thread if the block takes longer than ``seconds``."""
    timer = threading.Timer(seconds, quietly, (give_up,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _lost(name: str, transport: paramiko.Transport) -> DeviceLostError:
    reason = transport.get_exception()
    why = f" ({reason})" if reason is not None and str(reason) else ""
    return DeviceLostError(f"{name}: the connection was lost{why}; check its power and its network, then run again")
