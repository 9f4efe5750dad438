"""This module measures the goodput of a link by iperf3, or by a Python sender without iperf3."""

import hmac
import json
import math
import select
import socket
import struct
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

INTERVAL_S = 0.1
#: Share of empty intervals beyond which the total counts: what is left after a ramp-up could have a
#: median of nothing.
MOST_EMPTY = 0.25
#: Longest silence of a peer, and longest wait for its connection, before the probe fails.
SILENCE_LIMIT_S = 5.0
_BLOCK_BYTES = 1 << 18
_ANSWER_BYTES = 1 << 16
_POLL_S = 0.1
_IPERF3 = ("iperf3", "--json", "--interval", str(INTERVAL_S))


class LinkError(Exception):
    """A probe of a link failed."""


class LinkThroughput(NamedTuple):
    """What a probe of throughput has measured.

    bytes_per_s: what the receiver got in each interval.
    send_cpu_s, receive_cpu_s: processor seconds of a byte at either end, of a program that sends
        bytes as they are; None where the tool does not tell.
    """

    tool: str
    bytes_per_s: Tuple[float, ...]
    send_cpu_s: Optional[float] = None
    receive_cpu_s: Optional[float] = None


def iperf3_server_command(port: int, address: str) -> List[str]:
    """The command that serves one test on one address of this device, then ends."""
    return [*_IPERF3, "--port", str(port), "--server", "--one-off", "--bind", address]


def iperf3_client_command(address: str, port: int, seconds: float) -> List[str]:
    """The command that sends for whole seconds, rounded up, and prints what the server received."""
    test = ["--client", address, "--time", str(math.ceil(seconds)), "--get-server-output"]
    return [*_IPERF3, "--port", str(port), *test]


def parse_iperf3(text: str) -> Tuple[List[float], Optional[str]]:
    """Parse ``iperf3 --json``: (bytes/s received in each interval, None), or ([], error).

    The sender's figures count bytes in its own buffers, so that only the receiver's are used: its
    total where a link is so slow that nothing arrives in many intervals.
    """
    try:
        report = json.loads(text)
        if report.get("error"):  # the exit code is 0 all the same
            return [], str(report["error"])
        values = _intervals(report.get("server_output_json") or report)
        if not values or values.count(0.0) > MOST_EMPTY * len(values):
            values = [_rate(report["end"]["sum_received"])]
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return [], "iperf3 gave no complete report; it ended with %r" % text[-200:]
    return (values, None) if max(values) > 0 else ([], "nothing arrived")


def iperf3_cpu_s(text: str) -> Tuple[Optional[float], Optional[float]]:
    """Processor seconds of a byte at the sender and the receiver of ``iperf3 --json``, if told."""
    try:
        end = json.loads(text)["end"]
        percent, total = end["cpu_utilization_percent"], end["sum_sent"]
        s_per_byte = [
            0.01 * percent[name] * total["seconds"] / total["bytes"] for name in ("host_total", "remote_total")
        ]
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return None, None
    send_s, receive_s = (value if 0 < value < math.inf else None for value in s_per_byte)
    return send_s, receive_s


def _intervals(report: Dict[str, Any]) -> List[float]:
    sums = [interval["sum"] for interval in report["intervals"]]
    received = [total for total in sums if total.get("sender") is False]
    longest_s = max((total["seconds"] for total in received), default=0.0)
    return [_rate(total) for total in received if total["seconds"] > longest_s / 2]  # the last one may be shorter


def _rate(total: Dict[str, Any]) -> float:
    return _finite(total["bytes"] / total["seconds"])


def _finite(rate: Any) -> float:
    if not 0.0 <= float(rate) < math.inf:
        raise ValueError("no rate: %r" % rate)
    return float(rate)


def accept(listener: socket.socket, limit_s: float, should_stop: Callable[[], bool]) -> socket.socket:
    """The next connection to a listening socket. Raises LinkError at the limit or when stopped."""
    deadline = time.monotonic() + limit_s
    listener.settimeout(_POLL_S)
    while time.monotonic() < deadline and not should_stop():
        try:
            return listener.accept()[0]
        except socket.timeout:
            continue
    raise LinkError("nobody connected to port %d" % listener.getsockname()[1])


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
        return [_finite(rate) for rate in json.loads(text.decode())]
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise LinkError("the receiver ended without an answer") from error
