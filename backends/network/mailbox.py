"""Messages between the members of a run: a connection and a sending thread for each peer that one sends to."""

import collections
import contextlib
import functools
import socket
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from backends.network import framing
from backends.network.acceptor import Acceptor
from backends.network.send_queue import SendQueue
from backends.protocol.orders import Identity
from backends.strategies.message import Message, buffers

#: How many bytes of one peer's messages may wait here, in sizes of the model, before its connection is left unread.
ROOM = 4


class Interrupted(Exception):
    """What is waited for cannot come any more: somebody has left, and a new epoch begins."""


class Envelope(NamedTuple):
    """A message with who sent it, in which of its steps, and what it says beside."""

    sender: str
    step: int
    meta: Dict[str, Any]
    message: Message


class Mailbox:
    """All connections of one member. ``size``: elements of the model, that no message exceeds.

    Its own messages leave in order and one at a time for each peer. ``handle(parcel)`` is called, in the thread of the
    connection, for those with a meta of "asks"; all others wait until they are taken. Close it at the end.
    """

    def __init__(
        self,
        name: str,
        identity: Identity,
        listener: socket.socket,
        size: int,
        limit_s: float,
        emit: Any,
        handle: Optional[Callable[[Envelope], None]] = None,
    ) -> None:
        self.name = name
        self.handle = handle
        self._size = size
        self._limit_s = limit_s
        self._tls = framing.context(identity, server_side=False)
        self._changed = threading.Condition()
        self._addresses: Dict[str, Tuple[str, int]] = {}
        self._outboxes: Dict[str, SendQueue] = {}
        self._parcels: List[Envelope] = []
        self._waiting_bytes: Dict[str, int] = collections.Counter()
        self._incoming: List[framing.Connection] = []
        self._epoch, self._called = 0, 0
        self._closed = False
        self.sent_bytes = 0
        self._door = Acceptor(
            listener, framing.context(identity, server_side=True), limit_s, self._read, lambda _: {}, emit
        )

    # -- epochs ------------------------------------------------------------------------------------

    def begin(self, epoch: int, addresses: Dict[str, Tuple[str, int]]) -> None:
        """A new epoch with these members: what is left of earlier ones is forgotten."""
        with self._changed:
            self._epoch, self._called = epoch, max(epoch, self._called)
            for name in [name for name in self._outboxes if self._addresses.get(name) != addresses.get(name)]:
                self._outboxes.pop(name).close()
            for outbox in self._outboxes.values():
                outbox.clear()
            self._addresses = dict(addresses)
            asked = [p for p in self._parcels if p.meta["epoch"] == epoch and p.meta.get("asks")]
            self._keep(lambda p: p.meta["epoch"] >= epoch and all(p is not each for each in asked))
        if self.handle is not None:
            for envelope in asked:
                with contextlib.suppress(Interrupted):  # the member that asked is interrupted too
                    self.handle(envelope)

    def call(self, epoch: int) -> None:
        """The epoch that there is or must be; who waits in an earlier one is interrupted."""
        with self._changed:
            self._called = max(epoch, self._called)
            self._changed.notify_all()

    # -- sending -----------------------------------------------------------------------------------

    def send(self, peer: str, step: int, message: Message, **meta: Any) -> None:
        """Send in the background; waits while an earlier step's message to this peer has not begun to go out. What the
        message holds must not change until ``flush``. Raises Interrupted."""
        full = dict(meta, step=step, epoch=self._epoch, message=message.head)
        outbox = self._outbox(peer)
        self._until(lambda: not outbox.waiting or outbox.step == step)
        outbox.put(step, full, message)

    def flush(self) -> None:
        """Wait until all has gone out. Raises Interrupted."""
        self._until(lambda: all(outbox.idle for outbox in self._outboxes.values()))

    def bytes_per_s(self, peer: str) -> Optional[float]:
        """What the link to a peer carried lately; None before anything was sent."""
        return self._outbox(peer).rate

    def _outbox(self, peer: str) -> SendQueue:
        with self._changed:
            if peer not in self._outboxes:
                self._outboxes[peer] = SendQueue(functools.partial(self.connect, peer), self.gone_out)
            return self._outboxes[peer]

    def connect(self, peer: str) -> framing.Connection:
        """A connection to a member. Raises WireError."""
        address, port = self._addresses[peer]
        connection = framing.connect(address, port, self._tls, self._limit_s, peer)
        connection.wait_for_ever()  # a slow peer may leave it unread for long: heartbeats tell who is alive
        connection.send({"peer": True})
        return connection

    def gone_out(self, count: int) -> None:
        """So many bytes have gone out; none where that has failed, and the step cannot be ended."""
        with self._changed:
            self.sent_bytes += count
            if not count:
                self._called = self._epoch + 1
            self._changed.notify_all()

    # -- receiving ---------------------------------------------------------------------------------

    def take(self, wanted: Callable[[Envelope], bool], count: int) -> List[Envelope]:
        """Wait for so many wanted parcels and take all there are, by step and sender. Raises Interrupted."""
        taken: List[Envelope] = []

        def there() -> bool:
            taken[:] = [p for p in self._parcels if p.meta["epoch"] == self._epoch and wanted(p)]
            return len(taken) >= count

        with self._changed:
            self._until(there)
            self._keep(lambda parcel: all(parcel is not other for other in taken))
        return sorted(taken, key=lambda parcel: (parcel.step, parcel.sender))

    def next(self, peer: str, step: int, kind: str) -> Envelope:
        """A parcel of that kind from a peer in that step, of which there is one; waits for it. Raises Interrupted."""
        return self.take(lambda p: (p.sender, p.step, p.meta.get("kind")) == (peer, step, kind), 1)[0]

    def _keep(self, wanted: Callable[[Envelope], bool]) -> None:
        self._parcels = [parcel for parcel in self._parcels if wanted(parcel)]
        self._waiting_bytes.clear()
        for parcel in self._parcels:
            self._waiting_bytes[parcel.sender] += parcel.message.traffic_bytes
        self._changed.notify_all()

    def _until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._interrupted() or condition())
            if self._interrupted():
                raise Interrupted()

    def _interrupted(self) -> bool:
        return self._closed or self._called > self._epoch

    def _read(self, connection: framing.Connection, hello: Dict[str, Any]) -> None:
        """A peer's messages, one after the other, until it closes."""
        connection.settimeout(None)
        self._incoming.append(connection)
        try:
            while not self._closed:
                self._deliver(*self._receive(connection))
        except (framing.WireError, ValueError, KeyError, TypeError, Interrupted):
            pass  # the peer is gone, or this is; the conductor tells what comes of it
        finally:
            self._incoming.remove(connection)

    def _receive(self, connection: framing.Connection) -> Tuple[str, Dict[str, Any], Message]:
        found: List[Message] = []

        def payload(meta: Dict[str, Any]) -> Sequence[memoryview]:
            size = int(meta["message"]["size"])
            if size > self._size:
                raise framing.WireError("%s sent %d elements of a model of %d" % (connection.peer, size, self._size))
            found.append(buffers(meta["message"], size))
            return framing.as_bytes(found[0].arrays)

        meta = connection.receive(payload).meta
        return connection.peer, meta, found[0]

    def _deliver(self, sender: str, meta: Dict[str, Any], message: Message) -> None:
        parcel = Envelope(sender, int(meta["step"]), meta, message)
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting_bytes[sender] < ROOM * 4 * self._size + 4096)
            asks = self.handle if meta.get("asks") and meta["epoch"] == self._epoch else None
            if asks is None and meta["epoch"] >= self._epoch:
                self._parcels.append(parcel)
                self._waiting_bytes[sender] += message.traffic_bytes
                self._changed.notify_all()
        if asks is not None:
            asks(parcel)

    def close(self) -> None:
        """End all connections."""
        with self._changed:
            self._closed = True
            outboxes = list(self._outboxes.values())
            self._changed.notify_all()
        for outbox in outboxes:
            outbox.close()
        for connection in list(self._incoming):
            connection.abort()
        self._door.close()
