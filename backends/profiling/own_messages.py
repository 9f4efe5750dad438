"""Messages of a device to itself right after a gradient, which leaves neither data nor code cached.

A server and the worker on its device exchange such messages in every step. An order of 1 kB took
110 to 340 microseconds of a processor after gradients of several networks, 40 without them.
"""

import concurrent.futures
import contextlib
import queue
import statistics
import threading
import time
from typing import Any, Callable, Iterator, List, Optional, Tuple

from backends.network import framing
from backends.network.framing import WireError
from backends.profiling.message_probe import MESSAGE_LIMIT, ProbedMessage, exchange, serve
from backends.profiling.probing import SILENCE_LIMIT_S
from backends.protocol.events import Listening
from backends.protocol.frames import EndProbe
from backends.protocol.orders import LoopbackEnds, ServeMessages
from profilers.records.step_costs import ORDER_BYTES, MessageCost

LOOPBACK = "127.0.0.1"
#: Messages of a size, and seconds for all but the fewest.
FEWEST, MOST = 3, 15
LIMIT_S = 0.3


def measure(ends: LoopbackEnds, gradient: Callable[[], Any], message_bytes: int) -> Tuple[MessageCost, ...]:
    """The costs of an order and of a whole message, smallest first.

    None where the device cannot reach itself. gradient: computes one, before each message.
    """
    with contextlib.suppress(WireError), to_itself(ends) as connection:
        sizes = sorted({ORDER_BYTES, min(message_bytes, MESSAGE_LIMIT)})
        return tuple(_cost(connection, gradient, size) for size in sizes)
    return ()


@contextlib.contextmanager
def to_itself(ends: LoopbackEnds) -> Iterator[framing.Connection]:
    """A connection of this process to a thread of it that answers messages.

    Raises WireError where there can be none.
    """
    task = _Task()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        # This process is the peer, which may compute for long from one message to the next.
        served = pool.submit(serve, task, ServeMessages(LOOPBACK, ends.server), None)
        served.add_done_callback(lambda _: task.ports.put(None))
        try:
            port = task.ports.get()
            if port is None:
                raise WireError("cannot listen on %s" % LOOPBACK)
            tls = framing.context(ends.sender, server_side=False)
            with contextlib.closing(framing.connect(LOOPBACK, port, tls, SILENCE_LIMIT_S)) as connection:
                yield connection
                connection.send(EndProbe())
        finally:
            task.stopping.set()


def _cost(connection: framing.Connection, gradient: Callable[[], Any], size: int) -> MessageCost:
    message = memoryview(bytearray(b"\x55") * size)
    made: List[ProbedMessage] = []
    began_s = time.monotonic()
    while len(made) < FEWEST or (len(made) < MOST and time.monotonic() - began_s < LIMIT_S):
        gradient()
        made.append(exchange(connection, message))
    seconds, send_cpu_s, receive_cpu_s = (statistics.median(values) for values in zip(*made[1:]))
    return MessageCost(size, send_cpu_s, receive_cpu_s, seconds)


class _Task:
    """Serving, which tells its port; None once it has ended."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.ports: "queue.Queue[Optional[int]]" = queue.Queue()

    def emit(self, event: Listening) -> None:
        self.ports.put(event.port)
