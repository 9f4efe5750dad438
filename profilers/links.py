"""How fast a link carries plain bytes: by iperf3, or by a Python sender where there is no iperf3."""

import hmac
import json
import math
import select
import socket
import statistics
import struct
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

INTERVAL_S = 0.1
#: Silence, or the wait for a peer, that is taken for a failure.
PATIENCE_S = 5.0
_BLOCK_BYTES = 1 << 18
_ANSWER_BYTES = 1 << 16
_POLL_S = 0.1


class LinkError(Exception):
    """A probe of a link failed."""


def iperf3_server_command(port: int, address: str) -> List[str]:
    """Serve one test on one address of this device, then end."""
    return [
        "iperf3",
        "--server",
        "--one-off",
        "--port",
        str(port),
        "--bind",
        address,
        "--interval",
        str(INTERVAL_S),
        "--json",
    ]


def iperf3_client_command(address: str, port: int, seconds: float) -> List[str]:
    """Send for ``seconds``, which iperf3 knows only as whole numbers, and ask what was received."""
    return [
        "iperf3",
        "--client",
        address,
        "--port",
        str(port),
        "--time",
        str(math.ceil(seconds)),
        "--interval",
        str(INTERVAL_S),
        "--json",
        "--get-server-output",
    ]


def parse_iperf3(text: str) -> Tuple[List[float], Optional[str]]:
    """``iperf3 --json`` -> (bytes/s received in each interval, None), or ([], what went wrong).

    What a sender counts has only reached its own buffers: where the report holds nothing of the
    receiver's intervals its one total is taken, as it is on links too slow for such short intervals.
    """
    try:
        report = json.loads(text)
        if report.get("error"):  # the exit code is 0 all the same
            return [], str(report["error"])
        values = _intervals(report.get("server_output_json") or report)
        if not values or statistics.median(values) <= 0:
            values = [_rate(report["end"]["sum_received"])]
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return [], "iperf3 gave no complete report; it ended with %r" % text[-200:]
    return (values, None) if max(values) > 0 else ([], "nothing arrived")


def _intervals(report: Dict[str, Any]) -> List[float]:
    sums = [interval["sum"] for interval in report["intervals"]]
    received = [total for total in sums if total.get("sender") is False]
    longest_s = max((total["seconds"] for total in received), default=0.0)
    return [_rate(total) for total in received if total["seconds"] > longest_s / 2]  # the last one is a stub


def _rate(total: Dict[str, Any]) -> float:
    return float(total["bytes"] / total["seconds"])


def accept(listener: socket.socket, patience_s: float, should_stop: Callable[[], bool]) -> socket.socket:
    """The next connection to a listening socket. Raises LinkError when none comes, or when told to stop."""
    deadline = time.monotonic() + patience_s
    listener.settimeout(_POLL_S)
    while time.monotonic() < deadline and not should_stop():
        try:
            return listener.accept()[0]
        except socket.timeout:
            continue
    raise LinkError("nobody connected to port %d" % listener.getsockname()[1])


def receive(listener: socket.socket, token: str, seconds: float, should_stop: Callable[[], bool]) -> None:
    """Take what one sender that knows the token sends for ``seconds`` and tell it bytes/s by interval.

    Raises LinkError when no such sender comes, or when it falls silent.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with accept(listener, deadline - time.monotonic(), should_stop) as sock:
            try:
                if not _knows(sock, token):
                    continue
                rates = _count(sock, seconds)
                sock.sendall(json.dumps(rates).encode())
                sock.shutdown(socket.SHUT_WR)
                _drain(sock)
                return
            except OSError as error:
                raise LinkError("lost the sender: %s" % error) from error


def _knows(sock: socket.socket, token: str) -> bool:
    """Whether a connection begins with the token; a stranger gets one second to show it."""
    sock.settimeout(1.0)
    said = b""
    try:
        while len(said) < len(token):
            chunk = sock.recv(len(token) - len(said))
            if not chunk:
                return False
            said += chunk
    except OSError:
        return False
    return hmac.compare_digest(said, token.encode())


def _count(sock: socket.socket, seconds: float) -> List[float]:
    sock.settimeout(PATIENCE_S)
    room = bytearray(_BLOCK_BYTES)
    rates = []
    began = since = time.monotonic()
    received = 0
    while since - began < seconds:
        count = sock.recv_into(room)
        if not count:
            raise LinkError("the sender ended after %.2f of %g s" % (time.monotonic() - began, seconds))
        received += count
        now = time.monotonic()
        if now - since >= INTERVAL_S:
            rates.append(received / (now - since))
            since, received = now, 0
    return rates


def _drain(sock: socket.socket) -> None:
    """Read on until the sender has its answer and ends: closing on unread bytes might destroy that answer."""
    deadline = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < deadline and sock.recv(_BLOCK_BYTES):
            pass
    except ConnectionResetError:
        pass  # it does not wait for its own bytes to arrive


def send(address: str, port: int, token: str, seconds: float) -> List[float]:
    """Send all that fits until ``receive`` answers; returns its bytes/s by interval. Raises LinkError."""
    try:
        with socket.create_connection((address, port), PATIENCE_S) as sock:
            # What is still in the buffers when the answer is here must not disturb the next probe.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.sendall(token.encode())
            _pour(sock, time.monotonic() + seconds + PATIENCE_S)
            return _answer(sock)
    except OSError as error:
        raise LinkError("cannot send to %s:%d: %s" % (address, port, error)) from error


def _pour(sock: socket.socket, deadline: float) -> None:
    """Send until the other side has something to say."""
    block = bytes(_BLOCK_BYTES)
    sock.setblocking(False)
    while time.monotonic() < deadline:
        readable, writable, _ = select.select([sock], [sock], [], _POLL_S)
        if readable:
            return
        if writable:
            sock.send(block)
    raise LinkError("no answer from the receiver")


def _answer(sock: socket.socket) -> List[float]:
    sock.settimeout(PATIENCE_S)
    text = b""
    while len(text) < _ANSWER_BYTES:
        chunk = sock.recv(_ANSWER_BYTES)
        if not chunk:
            break
        text += chunk
    try:
        return [float(rate) for rate in json.loads(text.decode())]
    except (ValueError, TypeError) as error:
        raise LinkError("the receiver ended without an answer") from error
