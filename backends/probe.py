"""Probes of one link, run on the devices at its two ends: plain throughput, and the encrypted data plane.

Each is a pair of orders: one serves and tells its ports as an event, the other sends and has the result.
"""

import binascii
import contextlib
import math
import os
import socket
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence

from backends import iperf3, wire
from backends.neighbour import REST_S, Neighbour, taken_s
from profilers import links
from profilers.links import PATIENCE_S, LinkError

IPERF3 = "iperf3"
PYTHON = "python"
#: Message sizes every link is measured at, unless a model's size is near.
SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 22)
MESSAGE_LIMIT = 1 << 30
ROUND_TRIPS = 20
_FEWEST = 3  # messages of a size: one to warm up and two to compare
_ENOUGH_S = 0.4  # a size that has taken as long is not repeated for more than the fewest
_BESIDE_S = 1.0  # of transfers beside a computation, at either end
_APART = 1.5  # the curve is a line between sizes: nearer ones tell nothing more


# -- throughput ------------------------------------------------------------------------------------


def throughput_serve(job, address, tool, count, seconds):
    # type: (Any, str, str, int, float) -> None
    """Receive from ``count`` senders at once. Event: {"ports": [one a sender], "token": for tool python}."""
    if tool == IPERF3:
        iperf3.serve(job, address, count, seconds)
    else:
        _serve_python(job, address, count, seconds)


def throughput_send(job, address, port, tool, seconds, token):
    # type: (Any, str, int, str, float, str) -> Dict[str, Any]
    """Send for some seconds; {"tool", "bytes_per_s": what the receiver got in each interval}."""
    rates = iperf3.send(address, port, seconds) if tool == IPERF3 else links.send(address, port, token, seconds)
    return {"tool": tool, "bytes_per_s": rates}


def _serve_python(job, address, count, seconds):
    # type: (Any, str, int, float) -> None
    token = binascii.hexlify(os.urandom(16)).decode()
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(wire.listen(address)) for _ in range(count)]
        job.emit({"ports": [listener.getsockname()[1] for listener in listeners], "token": token})
        with ThreadPoolExecutor(count) as pool:
            receivers = [pool.submit(links.receive, listener, token, seconds, job.stopping.is_set)
                         for listener in listeners]
        for receiver in receivers:
            receiver.result()


# -- message-size curve ----------------------------------------------------------------------------


class _Exchange(NamedTuple):
    """One message and its acknowledgement: the whole time, and processor seconds at both ends."""

    elapsed_s: float
    send_cpu_s: float
    receive_cpu_s: float


def curve_serve(job, address, identity):
    # type: (Any, str, Sequence[str]) -> None
    """Acknowledge messages of one peer until it has no more. Event: {"port"}."""
    tls = wire.context(wire.Identity(*identity), server_side=True)
    with wire.listen(address) as listener:
        job.emit({"port": listener.getsockname()[1]})
        connection = _admit(job, listener, tls)
    room = _Room()
    with contextlib.closing(connection):
        while not job.stopping.is_set():
            before_s = _cpu_s()
            meta = connection.receive(room).meta
            spent_s = _cpu_s() - before_s
            if meta["last"]:
                return
            if meta.get("beside"):
                _serve_beside(job, connection, room)
            else:
                connection.send({"cpu_s": spent_s})


def _serve_beside(job, connection, room):
    # type: (Any, wire.Connection, _Room) -> None
    """Acknowledge messages while this device computes; the answer to an empty one tells what they took from that."""
    with _beside() as taken:
        connection.send({})
        while not job.stopping.is_set() and connection.receive(room).meta["bytes"]:
            connection.send({})
    connection.send({"taken_s": taken.seconds})


class _Taken:
    """What a transfer took of this device's processors, seconds; known when it is over."""

    seconds = math.nan


@contextlib.contextmanager
def _beside():
    # type: () -> Iterator[_Taken]
    """A transfer by this thread while the device computes, which it also does for a while before and after."""
    taken = _Taken()
    with contextlib.closing(Neighbour()) as neighbour:
        time.sleep(REST_S)
        began_s, before_s = time.monotonic(), _cpu_s()
        yield taken
        ended_s, spent_s = time.monotonic(), _cpu_s() - before_s
        time.sleep(REST_S)
        taken.seconds = taken_s(neighbour, began_s, ended_s, spent_s)


def ladder(sizes):
    # type: (Sequence[int]) -> List[int]
    """The sizes to measure, ascending: those wanted, none close below another, and those of SIZES between."""
    steps = []  # type: List[int]
    for size in sorted(set(sizes), reverse=True):
        if not steps or size * _APART < steps[-1]:
            steps.append(size)
    far = [size for size in SIZES if all(max(size, step) > _APART * min(size, step) for step in steps)]
    return sorted(steps + far)


def curve_send(job, address, port, identity, sizes, repeats=5, limit_s=1.2, beside=False):
    # type: (Any, str, int, Sequence[str], Sequence[int], int, float, bool) -> Dict[str, Any]
    """One-way times of messages through the encrypted data plane, smallest first.

    A message takes until its acknowledgement is back, less half a round trip of an empty one. A size is
    left out, and all above it, when not even three messages of it are expected to pass in ``limit_s``.

    Returns {"latency_s": half round trips, "points": [{"message_bytes", "seconds", "warmup", "send_cpu_s",
    "receive_cpu_s": processor seconds of a message}], and with ``beside`` "send_taken_s" and "receive_taken_s",
    processor seconds per byte that a computation on all processors lacks meanwhile}.
    """
    tls = wire.context(wire.Identity(*identity), server_side=False)
    with contextlib.closing(wire.connect(address, port, tls, PATIENCE_S)) as connection:
        trips = [_exchange(connection, memoryview(b"")).elapsed_s / 2 for _ in range(ROUND_TRIPS + 1)][1:]
        latency_s = statistics.median(trips)
        points = []  # type: List[Dict[str, Any]]
        for size in ladder(sizes):
            expected_s = _expected_s(points, size, latency_s)
            if points and (_FEWEST * expected_s > limit_s or size > MESSAGE_LIMIT or job.stopping.is_set()):
                break
            count = max(_FEWEST, min(1 + repeats, int(_ENOUGH_S / expected_s)))
            message = memoryview(bytearray(b"\x55") * size)
            exchanges = [_exchange(connection, message) for _ in range(count)]
            points.append(_point(size, exchanges, latency_s))
        taken = _send_beside(connection, message) if beside else {}
        connection.send({"bytes": 0, "last": True})
    return dict(taken, latency_s=trips, points=points)


def _send_beside(connection, message):
    # type: (wire.Connection, memoryview) -> Dict[str, float]
    """Send for a while to a device that computes, then from one that does: what it takes there, seconds per byte.

    Not both at once: in training whoever exchanges with a computing host is not computing itself.
    """
    connection.send({"bytes": 0, "last": False, "beside": True})
    connection.receive()  # it has computed for a while
    received = _send_for(connection, message, _BESIDE_S)
    connection.send({"bytes": 0, "last": False})
    received_s = float(connection.receive().meta["taken_s"])
    with _beside() as taken:
        sent = _send_for(connection, message, _BESIDE_S)
    return {"send_taken_s": taken.seconds / sent, "receive_taken_s": received_s / received}


def _send_for(connection, message, lasting_s):
    # type: (wire.Connection, memoryview, float) -> int
    """Messages, each acknowledged, for so long; their bytes."""
    count, began_s = 0, time.monotonic()
    while time.monotonic() - began_s < lasting_s:
        connection.send({"bytes": len(message), "last": False}, (message,))
        connection.receive()
        count += len(message)
    return count


def _expected_s(points, size, latency_s):
    # type: (Sequence[Dict[str, Any]], int, float) -> float
    """Seconds of one message and its acknowledgement at the rate of the largest size so far."""
    if not points:
        return 2 * latency_s
    last = points[-1]
    seconds = statistics.median(last["seconds"])
    return 2 * latency_s + max(0.0, float(seconds) - latency_s) * size / last["message_bytes"]


def _point(size, exchanges, latency_s):
    # type: (int, Sequence[_Exchange], float) -> Dict[str, Any]
    # No message takes less than half of its own exchange, however slow the empty ones were.
    seconds = [max(exchange.elapsed_s - latency_s, exchange.elapsed_s / 2) for exchange in exchanges]
    _, send_cpu_s, receive_cpu_s = (statistics.median(values) for values in zip(*exchanges[1:]))
    return {"message_bytes": size, "warmup": seconds[:1], "seconds": seconds[1:],
            "send_cpu_s": send_cpu_s, "receive_cpu_s": receive_cpu_s}


def _exchange(connection, message):
    # type: (wire.Connection, memoryview) -> _Exchange
    began, before_s = time.perf_counter(), _cpu_s()
    connection.send({"bytes": len(message), "last": False}, (message,))
    spent_s = _cpu_s() - before_s
    answer = connection.receive().meta
    return _Exchange(time.perf_counter() - began, spent_s, float(answer["cpu_s"]))


def _cpu_s():
    # type: () -> float
    """Processor seconds of this thread; finer than getrusage, whose kernel may count clock ticks."""
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


class _Room:
    """Where messages are received: one buffer that is as large as the largest so far."""

    def __init__(self):
        # type: () -> None
        self._buffer = bytearray()

    def __call__(self, meta):
        # type: (Dict[str, Any]) -> Sequence[memoryview]
        size = meta["bytes"]
        if not 0 <= size <= MESSAGE_LIMIT:
            raise wire.WireError("a message of %s bytes; the limit is %d" % (size, MESSAGE_LIMIT))
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        return (memoryview(self._buffer)[:size],)


def _admit(job, listener, tls):
    # type: (Any, socket.socket, Any) -> wire.Connection
    """The first peer that is of this run; strangers are turned away."""
    deadline = time.monotonic() + PATIENCE_S
    refused = ""
    while True:
        try:
            sock = links.accept(listener, deadline - time.monotonic(), job.stopping.is_set)
        except LinkError as error:
            raise LinkError("%s%s" % (error, refused)) from error
        try:
            return wire.accept(sock, tls, PATIENCE_S)
        except wire.WireError as error:
            refused = "; refused: %s" % error
