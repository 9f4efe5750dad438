"""The message probe times messages of several sizes through the encrypted data plane.

It also measures the processor time that they take from a computation. One order serves at an end
of a link and tells its port as an event, the other sends and has the result.
"""

import contextlib
import socket
import statistics
import time
from typing import Any, Callable, ContextManager, List, NamedTuple, Optional, Sequence, Type, TypeVar

from backends.network import framing
from backends.profiling.interference import REST_S, computing, stolen_cpu_s
from backends.profiling.probing import SILENCE_LIMIT_S, LinkError, accept
from backends.protocol.events import Listening, MessageTimes
from backends.protocol.frames import (
    ComputeBeside,
    Done,
    EndProbe,
    EndTurns,
    ProbeMessage,
    ProbeReceived,
    StolenTime,
)
from backends.protocol.orders import SendMessages, ServeMessages
from profilers.records.links import CurvePoint
from profilers.records.readings import Samples
from profilers.thread_times import thread_cpu_s

#: Message sizes every link is measured at, unless a model's size is near.
SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 22)
MESSAGE_LIMIT = 1 << 30
ROUND_TRIPS = 20
_FEWEST = 3  # messages of a size: one to warm up and two to compare
_APART = 1.5  # the curve is a line between sizes: nearer ones tell nothing more

#: The answer to a message beside a computation, whose processor time is taken by turns.
UNTIMED = ProbeReceived(0.0)

#: What a sender asks for.
_ASKED = (ProbeMessage, ComputeBeside, EndProbe)

Answer = TypeVar("Answer")


class ProbedMessage(NamedTuple):
    """One message and its acknowledgement: the whole time, and processor seconds at both ends."""

    elapsed_s: float
    send_cpu_s: float
    receive_cpu_s: float


def serve(task: Any, order: ServeMessages, silence_s: Optional[float] = SILENCE_LIMIT_S) -> None:
    """Acknowledge messages of one peer until it has no more; emits the port.

    silence_s: of a peer that counts as gone; None where that shows anyway.
    """
    tls = framing.context(order.identity, server_side=True)
    with framing.listen(order.address) as listener:
        task.emit(Listening(listener.getsockname()[1]))
        connection = _admit(task, listener, tls)
    buffer = _ReceiveBuffer()
    with contextlib.closing(connection):
        connection.settimeout(silence_s)
        while not task.stopping.is_set():
            before_s = thread_cpu_s()
            asked: Any = connection.receive(*_ASKED, payload=buffer)
            spent_s = thread_cpu_s() - before_s
            if isinstance(asked, EndProbe):
                return
            if isinstance(asked, ComputeBeside):
                _serve_beside(task, connection, buffer)
            else:
                connection.send(ProbeReceived(spent_s))


def _serve_beside(task: Any, connection: framing.Connection, buffer: "_ReceiveBuffer") -> None:
    """Acknowledge messages while this device computes, until there are no more turns.

    An empty message begins and ends each turn. The last answer has the stolen processor seconds.
    """
    with computing() as probe:
        connection.send(Done())
        while not task.stopping.is_set() and isinstance(connection.receive(ProbeMessage, EndTurns), ProbeMessage):
            connection.send(UNTIMED)
            with probe.turn():
                while connection.receive(ProbeMessage, payload=buffer).bytes:
                    connection.send(UNTIMED)
            connection.send(UNTIMED)
        stolen_s = stolen_cpu_s(probe)
    connection.send(StolenTime(stolen_s))


def ladder(sizes: Sequence[int]) -> List[int]:
    """The sizes to measure, ascending: ``sizes`` without near neighbours, and far ones of SIZES."""
    steps: List[int] = []
    for size in sorted(set(sizes), reverse=True):
        if not steps or size * _APART < steps[-1]:
            steps.append(size)
    far = [size for size in SIZES if all(max(size, step) > _APART * min(size, step) for step in steps)]
    return sorted(steps + far)


def send(task: Any, order: SendMessages) -> MessageTimes:
    """One-way times of messages through the encrypted data plane, smallest first.

    A message takes until its acknowledgement is back, less half a round trip of an empty one. A
    size is left out, and all above it, when not even three messages are expected to pass in
    ``limit_s``.
    """
    tls = framing.context(order.identity, server_side=False)
    with contextlib.closing(framing.connect(order.address, order.port, tls, SILENCE_LIMIT_S)) as connection:
        trips = [exchange(connection, memoryview(b"")).elapsed_s / 2 for _ in range(ROUND_TRIPS + 1)][1:]
        latency_s = statistics.median(trips)
        points: List[CurvePoint] = []
        for size in ladder(order.sizes):
            expected_s = _expected_s(points, size, latency_s)
            if points and (_FEWEST * expected_s > order.limit_s or size > MESSAGE_LIMIT or task.stopping.is_set()):
                break
            count = max(_FEWEST, min(1 + order.repeats, int(order.enough_s / expected_s)))
            message = memoryview(bytearray(b"\x55") * size)
            points.append(_point(size, [exchange(connection, message) for _ in range(count)], latency_s))
        found = MessageTimes(tuple(trips), tuple(points))
        if order.turns:
            found = _send_beside(connection, order, message, found)
        connection.send(EndProbe())
    return found


def _send_beside(
    connection: framing.Connection, order: SendMessages, message: memoryview, found: MessageTimes
) -> MessageTimes:
    """Add the processor seconds that a transfer takes from a receiver and a sender that compute.

    Not both at once: in training whoever exchanges with a computing host is not computing itself.
    A message is no larger than what passes in a turn, at the rate of the largest.
    """
    largest = found.points[-1]
    message = message[: int(largest.message_bytes * order.turn_s / statistics.median(largest.seconds.values)) + 1]
    _ask(connection, ComputeBeside(), Done)  # it has computed for a while
    received = _send_turns(connection, order, message, contextlib.ExitStack)
    received_s = _ask(connection, EndTurns(), StolenTime).stolen_cpu_s
    with computing() as probe:
        sent = _send_turns(connection, order, message, probe.turn)
        sent_s = stolen_cpu_s(probe)
    return found._replace(
        send_stolen_cpu_s=None if sent_s is None else sent_s / sent,
        receive_stolen_cpu_s=None if received_s is None else received_s / received,
    )


def _send_turns(
    connection: framing.Connection, order: SendMessages, message: memoryview, turn: Callable[[], ContextManager[Any]]
) -> int:
    """Messages, each acknowledged, in turns with a rest after each; their bytes."""
    count = 0
    for _ in range(order.turns):
        _ask(connection, ProbeMessage(0), ProbeReceived)
        with turn():
            began_s = time.monotonic()
            while time.monotonic() - began_s < order.turn_s:
                _ask(connection, ProbeMessage(len(message)), ProbeReceived, message)
                count += len(message)
        _ask(connection, ProbeMessage(0), ProbeReceived)
        time.sleep(REST_S)
    return count


def _ask(connection: framing.Connection, head: Any, kind: Type[Answer], *arrays: memoryview) -> Answer:
    """The answer to a frame."""
    connection.send(head, arrays)
    return connection.receive(kind)


def _expected_s(points: Sequence[CurvePoint], size: int, latency_s: float) -> float:
    """Seconds of one message and its acknowledgement at the rate of the largest size so far."""
    if not points:
        return 2 * latency_s
    last = points[-1]
    seconds = statistics.median(last.seconds.values)
    return 2 * latency_s + max(0.0, seconds - latency_s) * size / last.message_bytes


def _point(size: int, exchanges: Sequence[ProbedMessage], latency_s: float) -> CurvePoint:
    # No message takes less than half of its own exchange, however slow the empty ones were.
    seconds = [max(exchange.elapsed_s - latency_s, exchange.elapsed_s / 2) for exchange in exchanges]
    _, send_cpu_s, receive_cpu_s = (statistics.median(values) for values in zip(*exchanges[1:]))
    return CurvePoint(size, Samples("s", tuple(seconds[1:]), tuple(seconds[:1])), send_cpu_s, receive_cpu_s)


def exchange(connection: framing.Connection, message: memoryview) -> ProbedMessage:
    """Send a message to who serves messages, and wait for its answer."""
    began, before_s = time.perf_counter(), thread_cpu_s()
    connection.send(ProbeMessage(len(message)), (message,))
    spent_s = thread_cpu_s() - before_s
    answer = connection.receive(ProbeReceived)
    return ProbedMessage(time.perf_counter() - began, spent_s, answer.cpu_s)


class _ReceiveBuffer:
    """Receives messages into one buffer, as large as the largest so far."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def __call__(self, head: Any) -> Sequence[memoryview]:
        size = head.bytes if isinstance(head, ProbeMessage) else 0
        if not 0 <= size <= MESSAGE_LIMIT:
            raise framing.WireError("a message of %s bytes; the limit is %d" % (size, MESSAGE_LIMIT))
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        return (memoryview(self._buffer)[:size],)


def _admit(task: Any, listener: socket.socket, tls: Any) -> framing.Connection:
    """The first peer that is of this run; strangers are turned away."""
    deadline = time.monotonic() + SILENCE_LIMIT_S
    refused = ""
    while True:
        try:
            sock = accept(listener, deadline - time.monotonic(), task.stopping.is_set)
        except LinkError as error:
            raise LinkError("%s%s" % (error, refused)) from error
        try:
            return framing.accept(sock, tls, SILENCE_LIMIT_S)
        except framing.WireError as error:
            refused = "; refused: %s" % error
