"""The message probe times messages of several sizes through the encrypted data plane.

It also measures the processor time that they take from a computation. One order serves at an end
of a link and tells its port as an event, the other sends and has the result.
"""

import contextlib
import socket
import statistics
import time
from typing import Any, Callable, ContextManager, Iterator, List, NamedTuple, Optional, Sequence, Type, TypeVar

import numpy as np

from backends.network import framing
from backends.profiling.interference import REST_S, InterferenceProbe, TransferTurn, stolen_cpu_s
from backends.protocol.events import Listening, MessagePoint, MessageTimes
from backends.protocol.frames import ComputeBeside, Done, EndProbe, EndTurns, ProbeMessage, ProbeReceived, StolenTime
from backends.protocol.orders import SendMessages, ServeMessages
from profilers import goodput
from profilers.goodput import SILENCE_LIMIT_S, LinkError

#: Message sizes every link is measured at, unless a model's size is near.
SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 22)
MESSAGE_LIMIT = 1 << 30
ROUND_TRIPS = 20
_FEWEST = 3  # messages of a size: one to warm up and two to compare
_COLD_S = 0.1  # until a computation that has just begun is as fast as ever
_MEMORY_BYTES, _CACHE_LINE_BYTES = 1 << 26, 64  # more than caches hold
_APART = 1.5  # the curve is a line between sizes: nearer ones tell nothing more

#: The answer to a message beside a computation, whose processor time is taken by turns.
UNTIMED = ProbeReceived(0.0)

Answer = TypeVar("Answer")


class _Exchange(NamedTuple):
    """One message and its acknowledgement: the whole time, and processor seconds at both ends."""

    elapsed_s: float
    send_cpu_s: float
    receive_cpu_s: float


def serve(task: Any, order: ServeMessages) -> None:
    """Acknowledge messages of one peer until it has no more; emits the port."""
    tls = framing.context(order.identity, server_side=True)
    with framing.listen(order.address) as listener:
        task.emit(Listening(listener.getsockname()[1]))
        connection = _admit(task, listener, tls)
    buffer = _ReceiveBuffer()
    with contextlib.closing(connection):
        while not task.stopping.is_set():
            before_s = _cpu_s()
            asked: Any = connection.receive(ProbeMessage, ComputeBeside, EndProbe, payload=buffer)
            spent_s = _cpu_s() - before_s
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
    with _beside() as beside:
        connection.send(Done())
        while not task.stopping.is_set() and isinstance(connection.receive(ProbeMessage, EndTurns), ProbeMessage):
            connection.send(UNTIMED)
            with beside.turn():
                while connection.receive(ProbeMessage, payload=buffer).bytes:
                    connection.send(UNTIMED)
            connection.send(UNTIMED)
    connection.send(StolenTime(beside.stolen_cpu_s))


class _Beside:
    """The turns of a transfer beside a computation.

    stolen_cpu_s: processor seconds that they took, known at the end; None where other work hid it
    """

    def __init__(self) -> None:
        self.turns: List[TransferTurn] = []
        self.stolen_cpu_s: Optional[float] = None

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """A turn of this thread."""
        began_s, before_s = time.monotonic(), _cpu_s()
        yield
        self.turns.append(TransferTurn(began_s, time.monotonic(), _cpu_s() - before_s))


@contextlib.contextmanager
def _beside() -> Iterator[_Beside]:
    """A transfer by this thread, in turns, while the device computes."""
    beside = _Beside()
    with contextlib.closing(InterferenceProbe()) as probe:
        time.sleep(_COLD_S + REST_S)
        yield beside
        beside.stolen_cpu_s = stolen_cpu_s(probe, beside.turns)


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
    ``limit_s``. With ``cold`` messages find the caches as a training step leaves them: 7 MB then
    cost the processor 12 to 15 % more, 0.26 MB nearly twice as much.
    """
    tls = framing.context(order.identity, server_side=False)
    with contextlib.closing(framing.connect(order.address, order.port, tls, SILENCE_LIMIT_S)) as connection:
        trips = [_exchange(connection, memoryview(b"")).elapsed_s / 2 for _ in range(ROUND_TRIPS + 1)][1:]
        latency_s = statistics.median(trips)
        memory = np.ones(_MEMORY_BYTES if order.cold else 0, np.uint8)
        points: List[MessagePoint] = []
        for size in ladder(order.sizes):
            expected_s = _expected_s(points, size, latency_s)
            if points and (_FEWEST * expected_s > order.limit_s or size > MESSAGE_LIMIT or task.stopping.is_set()):
                break
            count = max(_FEWEST, min(1 + order.repeats, int(order.enough_s / expected_s)))
            message = memoryview(bytearray(b"\x55") * size)
            exchanges = [_exchange_after(connection, message, memory) for _ in range(count)]
            points.append(_point(size, exchanges, latency_s))
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
    message = message[: int(largest.message_bytes * order.turn_s / statistics.median(largest.seconds)) + 1]
    _ask(connection, ComputeBeside(), Done)  # it has computed for a while
    received = _send_turns(connection, order, message, contextlib.ExitStack)
    received_s = _ask(connection, EndTurns(), StolenTime).stolen_cpu_s
    with _beside() as beside:
        sent = _send_turns(connection, order, message, beside.turn)
    return found._replace(
        send_stolen_cpu_s=None if beside.stolen_cpu_s is None else beside.stolen_cpu_s / sent,
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
            count += _send_for(connection, message, order.turn_s)
        _ask(connection, ProbeMessage(0), ProbeReceived)
        time.sleep(REST_S)
    return count


def _send_for(connection: framing.Connection, message: memoryview, lasting_s: float) -> int:
    count, began_s = 0, time.monotonic()
    while time.monotonic() - began_s < lasting_s:
        connection.send(ProbeMessage(len(message)), (message,))
        connection.receive(ProbeReceived)
        count += len(message)
    return count


def _ask(connection: framing.Connection, head: Any, kind: Type[Answer]) -> Answer:
    """The answer to a frame without arrays."""
    connection.send(head)
    return connection.receive(kind)


def _expected_s(points: Sequence[MessagePoint], size: int, latency_s: float) -> float:
    """Seconds of one message and its acknowledgement at the rate of the largest size so far."""
    if not points:
        return 2 * latency_s
    last = points[-1]
    seconds = statistics.median(last.seconds)
    return 2 * latency_s + max(0.0, seconds - latency_s) * size / last.message_bytes


def _point(size: int, exchanges: Sequence[_Exchange], latency_s: float) -> MessagePoint:
    # No message takes less than half of its own exchange, however slow the empty ones were.
    seconds = [max(exchange.elapsed_s - latency_s, exchange.elapsed_s / 2) for exchange in exchanges]
    _, send_cpu_s, receive_cpu_s = (statistics.median(values) for values in zip(*exchanges[1:]))
    return MessagePoint(size, tuple(seconds[1:]), tuple(seconds[:1]), send_cpu_s, receive_cpu_s)


def _exchange_after(connection: framing.Connection, message: memoryview, memory: Any) -> _Exchange:
    """After all of ``memory`` went through the caches."""
    memory[::_CACHE_LINE_BYTES].sum()
    return _exchange(connection, message)


def _exchange(connection: framing.Connection, message: memoryview) -> _Exchange:
    began, before_s = time.perf_counter(), _cpu_s()
    connection.send(ProbeMessage(len(message)), (message,))
    spent_s = _cpu_s() - before_s
    answer = connection.receive(ProbeReceived)
    return _Exchange(time.perf_counter() - began, spent_s, answer.cpu_s)


def _cpu_s() -> float:
    """Processor seconds of this thread; finer than getrusage, which may count clock ticks."""
    return time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)


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
            sock = goodput.accept(listener, deadline - time.monotonic(), task.stopping.is_set)
        except LinkError as error:
            raise LinkError("%s%s" % (error, refused)) from error
        try:
            return framing.accept(sock, tls, SILENCE_LIMIT_S)
        except framing.WireError as error:
            refused = "; refused: %s" % error
