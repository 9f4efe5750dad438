"""An SSH server inside the test process: real commands, real forwarding, and faults on request."""

import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from paramiko.common import cMSG_CHANNEL_SUCCESS

CHUNK_BYTES = 1 << 15
Receive = Callable[[int], bytes]
Send = Callable[[bytes], None]
GONE = (paramiko.SSHException, EOFError, OSError)


@dataclass
class Faults:
    """What goes wrong.

    drop_connects: so many connections are closed before the banner.
    drop_after_bytes: the connection is cut after so many bytes of standard output.
    stall: connections are taken and never answered.
    """

    refuse_login: bool = False
    drop_connects: int = 0
    drop_after_bytes: int | None = None
    stall: bool = False


@dataclass
class SshServer:
    """Its address, its keys, and what it has seen. shell: the login shell of its users."""

    port: int
    host_keys: tuple[paramiko.PKey, ...]
    client_key: paramiko.PKey
    faults: Faults
    shell: str = "/bin/sh"
    connects: int = 0
    logins: int = 0
    transports: list[paramiko.Transport] = field(default_factory=list)
    forwards: list[tuple[str, int]] = field(default_factory=list)

    @property
    def known_name(self) -> str:
        return f"[127.0.0.1]:{self.port}"

    def known_line(self, key: paramiko.PKey | None = None) -> str:
        """A line for known_hosts, by default the true one."""
        key = key or self.host_keys[0]
        return f"{self.known_name} {key.get_name()} {key.get_base64()}\n"

    def hang_up(self) -> None:
        """Cut every connection without a word."""
        for transport in self.transports:
            with suppress(OSError):
                transport.sock.shutdown(socket.SHUT_RDWR)


@contextmanager
def ssh_server(
    client_key: paramiko.PKey,
    faults: Faults | None = None,
    host_keys: tuple[paramiko.PKey, ...] = (),
    shell: str = "/bin/sh",
) -> Iterator[SshServer]:
    """Serve on 127.0.0.1, on a port of the system's choice, until the context ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = SshServer(listener.getsockname()[1], host_keys or (new_key(),), client_key, faults or Faults(), shell)
        thread = threading.Thread(target=_accept, args=(listener, server), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # wakes accept
            thread.join()
            for transport in server.transports:
                transport.close()


def new_key() -> paramiko.PKey:
    return paramiko.ECDSAKey.generate()


def write_key(key: paramiko.PKey, path: Path, password: str | None = None) -> Path:
    """A private key as a file of its own."""
    key.write_private_key_file(str(path), password=password)
    return path


def _accept(listener: socket.socket, server: SshServer) -> None:
    stalled = []
    while True:
        try:
            link, _ = listener.accept()
        except OSError:
            break
        server.connects += 1
        if server.faults.stall:
            stalled.append(link)
        elif server.connects <= server.faults.drop_connects:
            link.close()
        else:
            transport = _Transport(link)
            for key in server.host_keys:
                transport.add_server_key(key)
            server.transports.append(transport)
            with suppress(*GONE):
                transport.start_server(event=threading.Event(), server=_Session(server, transport))
    for link in stalled:
        link.close()


class _Transport(paramiko.Transport):
    """Tells when the client has been told that its command is accepted; paramiko tells it last."""

    def __init__(self, link: socket.socket) -> None:
        super().__init__(link)
        self.accepted: dict[int, threading.Event] = {}

    def _send_user_message(self, data: paramiko.Message) -> None:
        super()._send_user_message(data)
        if data.asbytes().startswith(cMSG_CHANNEL_SUCCESS):
            self.accepted[paramiko.Message(data.asbytes()[1:]).get_int()].set()


class _Session(paramiko.ServerInterface):
    def __init__(self, server: SshServer, transport: _Transport) -> None:
        self._server = server
        self._transport = transport
        self._targets: dict[int, tuple[str, int]] = {}

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self._server.logins += 1
        if self._server.faults.refuse_login or key != self._server.client_key:
            return paramiko.AUTH_FAILED
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED if kind == "session" else paramiko.OPEN_FAILED_UNKNOWN_CHANNEL_TYPE

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._transport.accepted[channel.remote_chanid] = threading.Event()
        _in_background(_execute, channel, command.decode(), self._server, self._transport)
        return True

    def check_channel_direct_tcpip_request(
        self, chanid: int, origin: tuple[str, int], destination: tuple[str, int]
    ) -> int:
        try:
            link = socket.create_connection(destination, 5)
        except OSError:
            return paramiko.OPEN_FAILED_CONNECT_FAILED
        self._server.forwards.append(destination)
        _in_background(_forward, self._transport, link)
        return paramiko.OPEN_SUCCEEDED


def _in_background(function: object, *args: object) -> None:
    threading.Thread(target=function, args=args, daemon=True).start()


def _execute(channel: paramiko.Channel, command: str, server: SshServer, transport: _Transport) -> None:
    """Run a command as a login shell would, with its streams on the channel.

    As under sshd, it ends by itself.
    """
    transport.accepted[channel.remote_chanid].wait(5)
    process = subprocess.Popen(
        [server.shell, "-c", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    _in_background(_feed, channel, process)
    errors = threading.Thread(target=_pump, args=(process.stderr, channel.sendall_stderr), daemon=True)
    errors.start()
    faults, sent = server.faults, 0

    def send(data: bytes) -> None:
        nonlocal sent
        if faults.drop_after_bytes is not None and sent + len(data) > faults.drop_after_bytes:
            channel.sendall(data[: faults.drop_after_bytes - sent])
            transport.sock.shutdown(socket.SHUT_RDWR)
        channel.sendall(data)
        sent += len(data)

    _pump(process.stdout, send)
    errors.join()
    with suppress(*GONE):
        channel.shutdown_write()
        code = process.wait()
        if code >= 0:
            channel.send_exit_status(code)
        channel.close()


def _feed(channel: paramiko.Channel, process: subprocess.Popen[bytes]) -> None:
    with suppress(*GONE):
        while data := channel.recv(CHUNK_BYTES):
            rest = memoryview(data)
            while rest:
                rest = rest[process.stdin.write(rest) :]
    with suppress(OSError):
        process.stdin.close()


def _pump(stream: object, send: object) -> None:
    with suppress(*GONE):
        while data := stream.read(CHUNK_BYTES):
            send(data)


def _forward(transport: paramiko.Transport, link: socket.socket) -> None:
    """Forward both directions until one ends.

    Without select: paramiko writes to the pipe behind a channel's fileno even after the channel was
    closed here, which ends the whole transport.
    """
    channel = transport.accept(5)
    with link:
        back = threading.Thread(target=_pour, args=(link.recv, channel.sendall, channel.close), daemon=True)
        back.start()
        _pour(channel.recv, link.sendall, lambda: link.shutdown(socket.SHUT_RDWR))
        back.join()


def _pour(receive: Receive, send: Send, end: Callable[[], None]) -> None:
    with suppress(*GONE):
        while data := receive(CHUNK_BYTES):
            send(data)
    with suppress(*GONE):
        end()
