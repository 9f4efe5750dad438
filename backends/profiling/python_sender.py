"""A Python sender and its receiver measure the throughput of a link where iperf3 is missing."""

import hmac
import json
import select
import socket
import struct
import time
from typing import Callable, List

from backends.profiling.probing import INTERVAL_S, SILENCE_LIMIT_S, LinkError, accept, checked_rate

_BLOCK_BYTES = 1 << 18
_ANSWER_BYTES = 1 << 16
_POLL_S = 0.1


def receive(listener: socket.socket, token: str, seconds: float, should_stop: Callable[[], bool]) -> None:
    """Receive for ``seconds`` from one sender with the token; answer bytes/s by interval.

    Raises LinkError when no such sender connects, or when it falls silent.
    """
    deadline = time.monotonic() + SILENCE_LIMIT_S
    while True:
        with accept(listener, deadline - time.monotonic(), should_stop) as sock:
            try:
                if not _has_token(sock, token):
                    continue
                rates = _receive_for(sock, seconds)
                sock.sendall(json.dumps(rates).encode())
                sock.shutdown(socket.SHUT_WR)
                _drain(sock)
                return
            except OSError as error:
                raise LinkError("lost the sender: %s" % error) from error


def _has_token(sock: socket.socket, token: str) -> bool:
    """Whether a connection begins with the token, within one second."""
    sock.settimeout(1.0)
    received = b""
    try:
        while len(received) < len(token):
            chunk = sock.recv(len(token) - len(received))
            if not chunk:
                return False
            received += chunk
    except OSError:
        return False
    return hmac.compare_digest(received, token.encode())


def _receive_for(sock: socket.socket, seconds: float) -> List[float]:
    sock.settimeout(SILENCE_LIMIT_S)
    buffer = bytearray(_BLOCK_BYTES)
    rates = []
    began = since = time.monotonic()
    received = 0
    while since - began < seconds:
        count = sock.recv_into(buffer)
        if not count:
            raise LinkError("the sender ended after %.2f of %g s" % (time.monotonic() - began, seconds))
        received += count
        now = time.monotonic()
        if now - since >= INTERVAL_S:
            rates.append(received / (now - since))
            since, received = now, 0
    return rates


def _drain(sock: socket.socket) -> None:
    """Read until the sender ends: closing with unread bytes might destroy the answer to it."""
    deadline = time.monotonic() + SILENCE_LIMIT_S
    try:
        while time.monotonic() < deadline and sock.recv(_BLOCK_BYTES):
            pass
    except ConnectionResetError:
        pass  # the sender resets the connection instead of flushing its buffers


def send(address: str, port: int, token: str, seconds: float) -> List[float]:
    """Send as fast as possible until ``receive`` answers; returns its bytes/s by interval.

    Raises LinkError.
    """
    try:
        with socket.create_connection((address, port), SILENCE_LIMIT_S) as sock:
            # Bytes left in the buffers after the answer would disturb the next probe.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.sendall(token.encode())
            _send_until_answered(sock, time.monotonic() + seconds + SILENCE_LIMIT_S)
            return _receive_rates(sock)
    except OSError as error:
        raise LinkError("cannot send to %s:%d: %s" % (address, port, error)) from error


def _send_until_answered(sock: socket.socket, deadline: float) -> None:
    """Send until the other side answers. Raises LinkError at the deadline."""
    block = bytes(_BLOCK_BYTES)
    sock.setblocking(False)
    while time.monotonic() < deadline:
        readable, writable, _ = select.select([sock], [sock], [], _POLL_S)
        if readable:
            return
        if writable:
            sock.send(block)
    raise LinkError("no answer from the receiver")


def _receive_rates(sock: socket.socket) -> List[float]:
    sock.settimeout(SILENCE_LIMIT_S)
    with sock.makefile("rb") as stream:
        text = stream.read(_ANSWER_BYTES)
    try:
        return [checked_rate(rate) for rate in json.loads(text.decode())]
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise LinkError("the receiver ended without an answer") from error
