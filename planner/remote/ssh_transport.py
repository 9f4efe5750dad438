"""A transport opens a stream to an SSH server: TCP, a ProxyCommand, or through a jump host."""

import os
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, suppress

import paramiko

from planner.errors import RemoteError
from planner.remote.drain import LAST_WORDS_S, Drain
from planner.remote.ssh_config import SshTarget

_DEAD_LINK_MS = 15_000
_ERRORS_BYTES = 1 << 12
#: What paramiko says of a channel that was closed before the thread that opened it woke.
_CLOSED_AT_ONCE = "Unable to open channel."

#: Exceptions that paramiko raises for a lost connection.
GONE = (paramiko.SSHException, EOFError, OSError)


def open_link(
    device: str, hop: SshTarget, via: paramiko.Transport | None, timeout_s: float, stack: ExitStack
) -> socket.socket | paramiko.Channel:
    """The stream to ``hop``, through ``via`` if given; ``stack`` closes it.

    Raises RemoteError with a remedy, in the name of ``device``, and one of GONE where the far end
    drops what a jump host has connected.
    """
    if via is not None:
        return _through(device, hop, via, timeout_s, stack)
    if hop.proxy_command is not None:
        return _proxy(device, hop.proxy_command, stack)
    try:
        link = stack.enter_context(socket.create_connection((hop.hostname, hop.port), timeout_s))
    except OSError as error:
        raise RemoteError(f"{device}: {_remedy(hop, error, timeout_s)}") from error
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; elsewhere the system's own, longer limit holds
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_LINK_MS)
    return link


def place(hop: SshTarget) -> str:
    """host:port, for messages."""
    return f"[{hop.hostname}]:{hop.port}" if ":" in hop.hostname else f"{hop.hostname}:{hop.port}"


def quietly(close: Callable[[], None]) -> None:
    """Close something whose other end may be closed already."""
    with suppress(*GONE):
        close()


def _remedy(hop: SshTarget, error: OSError, timeout_s: float) -> str:
    if isinstance(error, socket.gaierror):
        return (
            f"the name {hop.hostname} has no address ({error.strerror}); "
            "correct it in the fleet file, or name the host in ~/.ssh/config"
        )
    if isinstance(error, ConnectionRefusedError):
        return f"nothing listens at {place(hop)}; is sshd running there, and is the port right?"
    if isinstance(error, TimeoutError):
        return (
            f"no answer from {place(hop)} within {timeout_s:g} s; "
            "is it switched on, and does a firewall let this port pass?"
        )
    return f"{place(hop)} cannot be reached ({error.strerror}); check its network and this machine's"


def _through(
    device: str, hop: SshTarget, via: paramiko.Transport, timeout_s: float, stack: ExitStack
) -> paramiko.Channel:
    place_there = (hop.hostname, hop.port)
    try:
        channel = via.open_channel("direct-tcpip", place_there, ("127.0.0.1", 0), timeout=timeout_s)
    except GONE as error:
        if str(error) == _CLOSED_AT_ONCE:
            raise
        raise RemoteError(
            f"{device}: the jump host does not reach {place(hop)} ({error}); "
            "is that address right as seen from there, and does its sshd allow TCP forwarding?"
        ) from error
    stack.callback(quietly, channel.close)
    return channel


class ProxyLink(socket.socket):
    """Our end of the standard streams of a ProxyCommand."""

    errors: Drain


def proxy_words(link: socket.socket | paramiko.Channel) -> str:
    """What a ProxyCommand has said last, if it is one."""
    if not isinstance(link, ProxyLink):
        return ""
    link.errors.join(LAST_WORDS_S)
    lines = link.errors.bytes().decode(errors="replace").strip().splitlines()
    return f"ProxyCommand: {lines[-1]}" if lines else ""


def _proxy(device: str, command: str, stack: ExitStack) -> ProxyLink:
    """A ProxyCommand behind a socket, so that its end is detected at once.

    The user's shell runs it, as ssh has it do.
    """
    ours, theirs = socket.socketpair()
    link = stack.enter_context(ProxyLink(fileno=ours.detach()))
    shell = os.environ.get("SHELL") or "/bin/sh"
    with theirs:
        try:
            process = subprocess.Popen(
                [shell, "-c", f"exec {command}"], stdin=theirs.fileno(), stdout=theirs.fileno(),
                stderr=subprocess.PIPE, bufsize=0, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise RemoteError(f"{device}: ProxyCommand: {shell} does not start ({error}); correct SHELL") from error
    assert process.stderr is not None
    stack.callback(process.wait)
    stack.callback(_kill_group, process.pid)
    link.errors = Drain(device, stack.enter_context(process.stderr).read, _ERRORS_BYTES)
    return link


def _kill_group(leader: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
