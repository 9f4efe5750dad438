"""A send queue sends a member's messages to one peer in the background."""

import collections
import threading
import time
from typing import Callable, Deque, Optional, Tuple

from backends.frameworks.base import Arrays
from backends.network import framing
from backends.network.throughput_meter import ThroughputMeter
from backends.protocol.frames import Frame

#: Limits of a wait between two polls of the unacknowledged bytes, seconds. Each poll interrupts a
#: computation.
SHORTEST_S, LONGEST_S = 0.001, 0.2


class SendQueue:
    """What goes to one peer, in a thread of its own that connects when there is something.

    connect: may raise WireError, or KeyError for a peer that is no member any more
    gone_out: called with the head and the bytes of every message sent, 0 where sending has failed
    step: that of the last message
    """

    def __init__(self, connect: Callable[[], framing.Connection], gone_out: Callable[[Frame, int], None]) -> None:
        self._connect = connect
        self._gone_out = gone_out
        self._queue: Deque[Tuple[Frame, Arrays]] = collections.deque()
        self._ready = threading.Condition()
        self._sending = False
        self._closed = False
        self._connection: Optional[framing.Connection] = None
        self.step = -1
        self._meter = ThroughputMeter()
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def waiting(self) -> bool:
        """Whether there is a message that has not begun to go out."""
        return bool(self._queue)

    @property
    def idle(self) -> bool:
        """Whether all has gone out."""
        return not self._queue and not self._sending

    @property
    def rate(self) -> Optional[float]:
        """Bytes/s at which the peer has taken messages of late; None where nothing tells."""
        return self._meter.rate

    def put(self, head: Frame, arrays: Arrays) -> None:
        """Send a message after all others. head: has the number of a step."""
        with self._ready:
            self.step = head.step
            self._queue.append((head, arrays))
            self._ready.notify_all()

    def clear(self) -> None:
        """Forget what has not begun to go out."""
        with self._ready:
            self._queue.clear()

    def close(self) -> None:
        """Send nothing more."""
        with self._ready:
            self._closed = True
            self._queue.clear()
            self._ready.notify_all()
        if self._connection is not None:
            self._connection.abort()

    def _run(self) -> None:
        while True:
            with self._ready:
                self._sending = False
                self._ready.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    return
                head, arrays = self._queue.popleft()
                self._sending = True
            self._send(head, arrays)

    def _send(self, head: Frame, arrays: Arrays) -> None:
        count = 0
        try:
            if self._connection is None:
                self._connection = self._connect()
                self._meter.idle(0)
            self._meter.begin(time.perf_counter())
            self._connection.send(head, framing.as_bytes(arrays))
            count, self._connection.sent_bytes = self._connection.sent_bytes, 0
            self._meter.sent(count)
        except (framing.WireError, KeyError):
            # It is gone, which the coordinator notices, or comes back: then it is connected to
            # anew.
            if self._connection is not None:
                self._connection.close()
            self._connection = None
        with self._ready:
            self._sending = False
        self._gone_out(head, count)
        if count:
            self._watch()

    def _watch(self) -> None:
        """Until the peer has all that was sent, or there is more to send; then take the rate."""
        connection = self._connection
        assert connection is not None
        with self._ready:
            while not (self._meter.idle(connection.under_way()) or self._queue or self._closed or connection.aborted):
                left_s = self._meter.left_s(time.perf_counter())
                self._ready.wait(min(max(SHORTEST_S, left_s), LONGEST_S))
        self._meter.update_rate(time.perf_counter(), connection.quiet_s())
