"""A mailbox exchanges messages with the other members of a run, one connection a peer."""

import collections
import contextlib
import functools
import socket
import threading
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from backends.data.injected import NO_INJECTION
from backends.network import framing, sample_frames
from backends.network.acceptor import Acceptor
from backends.network.send_queue import SendQueue
from backends.protocol.frames import Frame, MailboxHello, PeerMessage, SharedSamples
from backends.protocol.member_specs import Identity
from backends.strategies.message import Message, buffers

#: A peer's connection is left unread while its waiting messages exceed this many models in bytes.
UNREAD_LIMIT_MODELS = 4


#: An epoch after all others: the run is over.
RUN_OVER = 1 << 40


class Interrupted(Exception):
    """A wait ends without a result: the membership has changed and a new epoch begins."""


class Envelope(NamedTuple):
    """A message that has arrived, its head and its sender."""

    sender: str
    head: PeerMessage
    message: Message

    @property
    def order(self) -> Tuple[int, str]:
        """What envelopes are sorted by: the sender's step, then its name."""
        return self.head.step, self.sender


class Mailbox:
    """Holds all connections of one member.

    size: elements of the model; no message may hold more.

    on_samples: gets samples that a peer gives, in the thread of the connection; raises ValueError
        where nobody wants any.

    Its own messages leave in order and one at a time for each peer. ``handle(envelope)`` is called,
    in the thread of the connection, for those that ask; all others wait until they are taken. Close
    it at the end.
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
        self.on_samples: Callable[[List[bytes]], None] = NO_INJECTION.receive
        self._size = size
        self._limit_s = limit_s
        self._tls = framing.context(identity, server_side=False)
        self._changed = threading.Condition()
        self._addresses: Dict[str, Tuple[str, int]] = {}
        self._send_queues: Dict[str, SendQueue] = {}
        self._envelopes: List[Envelope] = []
        self._waiting_bytes: Dict[str, int] = collections.Counter()
        self._incoming: List[framing.Connection] = []
        self._epoch, self._called = 0, 0
        self._closed = False
        self.sent_bytes = 0
        self._acceptor = Acceptor(
            listener,
            framing.context(identity, server_side=True),
            limit_s,
            MailboxHello,
            self._read,
            lambda name: self._epoch,
            emit,
        )

    # -- epochs ------------------------------------------------------------------------------------

    def begin(self, epoch: int, addresses: Dict[str, Tuple[str, int]]) -> None:
        """A new epoch with these members: what is left of earlier ones is forgotten."""
        with self._changed:
            self._epoch, self._called = epoch, max(epoch, self._called)
            for name in [name for name in self._send_queues if self._addresses.get(name) != addresses.get(name)]:
                self._send_queues.pop(name).close()
            for send_queue in self._send_queues.values():
                send_queue.clear()
            self._addresses = dict(addresses)
            asked = [each for each in self._envelopes if each.head.epoch == epoch and each.head.asks]
            self._retain(lambda other: other.head.epoch >= epoch and all(other is not each for each in asked))
        if self.handle is not None:
            for envelope in asked:
                with contextlib.suppress(Interrupted):  # the member that asked is interrupted too
                    self.handle(envelope)

    def call(self, epoch: int) -> None:
        """The epoch that there is or must be; who waits in an earlier one is interrupted."""
        with self._changed:
            self._called = max(epoch, self._called)
            self._changed.notify_all()

    @property
    def run_over(self) -> bool:
        """Whether no other epoch will come."""
        return self.is_past(RUN_OVER - 1)

    def is_past(self, epoch: int) -> bool:
        """Whether an epoch is over, so that nothing of it counts any more."""
        return self._called > epoch

    # -- sending -----------------------------------------------------------------------------------

    def send(
        self,
        peer: str,
        step: int,
        message: Message,
        kind: str = "",
        asks: bool = False,
        batch: int = 0,
        weight: float = 1.0,
    ) -> None:
        """Send in the background, once the messages of earlier steps to this peer are on the way.

        kind, asks, batch, weight: as in ``PeerMessage``.
        The arrays of the message must not change until ``flush``. Raises Interrupted.
        """
        head = PeerMessage(kind, step, self._epoch, message.head, asks, batch, weight)
        self._queue_for(peer, step).put(head, message.arrays)

    def send_samples(self, peer: str, step: int, payloads: Sequence[bytes]) -> None:
        """Send samples, which arrive before what is sent to this peer later. Raises Interrupted."""
        for head, content in sample_frames.packed(payloads, step):
            self._queue_for(peer, step).put(head, (content,))

    def _queue_for(self, peer: str, step: int) -> SendQueue:
        """The queue to a peer, once the messages of earlier steps are on the way."""
        send_queue = self._send_queue(peer)
        self._wait_until(lambda: not send_queue.waiting or send_queue.step == step)
        return send_queue

    def flush(self) -> None:
        """Wait until all has gone out. Raises Interrupted."""
        self._wait_until(lambda: all(send_queue.idle for send_queue in self._send_queues.values()))

    def bytes_per_s(self, peer: str) -> Optional[float]:
        """What the link to a peer carried lately; None before anything was sent."""
        return self._send_queue(peer).rate

    def _send_queue(self, peer: str) -> SendQueue:
        with self._changed:
            if peer not in self._send_queues:
                self._send_queues[peer] = SendQueue(functools.partial(self.connect, peer), self.gone_out)
            return self._send_queues[peer]

    def connect(self, peer: str) -> framing.Connection:
        """A connection to a member. Raises WireError."""
        address, port = self._addresses[peer]
        connection = framing.connect(address, port, self._tls, self._limit_s, peer)
        connection.wait_for_ever()  # a slow peer may leave it unread for long: heartbeats tell who is alive
        connection.send(MailboxHello())
        return connection

    def gone_out(self, head: Frame, count: int) -> None:
        """So many bytes have gone out; none where that has failed, and the step cannot be ended.

        Samples are counted by who gives them, and a step can be ended without them.
        """
        with self._changed:
            counts = not isinstance(head, SharedSamples)
            self.sent_bytes += count if counts else 0
            if counts and not count:
                self._called = max(self._called, self._epoch + 1)
            self._changed.notify_all()

    # -- receiving ---------------------------------------------------------------------------------

    def take(self, accepts: Callable[[Envelope], bool], count: int) -> List[Envelope]:
        """Wait for ``count`` envelopes that ``accepts`` admits; take all, by step and sender.

        Raises Interrupted.
        """
        taken: List[Envelope] = []

        def enough_arrived() -> bool:
            taken[:] = [each for each in self._envelopes if each.head.epoch == self._epoch and accepts(each)]
            return len(taken) >= count

        with self._changed:
            self._wait_until(enough_arrived)
            self._retain(lambda envelope: all(envelope is not other for other in taken))
        return sorted(taken, key=lambda envelope: envelope.order)

    def next(self, peer: str, step: int, kind: str) -> Envelope:
        """An envelope of that kind from a peer in that step, of which there is one; waits for it.

        Raises Interrupted.
        """
        expected = (peer, step, kind)
        return self.take(lambda other: (other.sender, other.head.step, other.head.kind) == expected, 1)[0]

    def _retain(self, accepts: Callable[[Envelope], bool]) -> None:
        self._envelopes = [envelope for envelope in self._envelopes if accepts(envelope)]
        self._waiting_bytes.clear()
        for envelope in self._envelopes:
            self._waiting_bytes[envelope.sender] += envelope.message.traffic_bytes
        self._changed.notify_all()

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._interrupted() or condition())
            if self._interrupted():
                raise Interrupted()

    def _interrupted(self) -> bool:
        return self._closed or self._called > self._epoch

    def _read(self, connection: framing.Connection, hello: MailboxHello) -> None:
        """A peer's messages, one after the other, until it closes."""
        connection.settimeout(None)
        self._incoming.append(connection)
        try:
            while not self._closed:
                envelope = self._receive(connection)
                if envelope is not None:
                    self._deliver(envelope)
        except (framing.WireError, ValueError, KeyError, TypeError, Interrupted):
            pass  # the peer is gone, or this is; the coordinator decides what follows
        finally:
            self._incoming.remove(connection)

    def _receive(self, connection: framing.Connection) -> Optional[Envelope]:
        """The next message; None where samples came in its place, which have been passed on."""
        found: List[Message] = []
        content: List[np.ndarray] = []

        def payload(head: Any) -> Sequence[memoryview]:
            if isinstance(head, SharedSamples):
                content.append(sample_frames.room(head))
                return framing.as_bytes(content)
            size = head.message.size
            if size > self._size:
                raise framing.WireError("%s sent %d elements of a model of %d" % (connection.peer, size, self._size))
            found.append(buffers(head.message, size))
            return framing.as_bytes(found[0].arrays)

        head: Any = connection.receive(PeerMessage, SharedSamples, payload=payload)
        if isinstance(head, SharedSamples):
            self.on_samples(sample_frames.unpacked(head, content[0]))
            return None
        return Envelope(connection.peer, head, found[0])

    def _deliver(self, envelope: Envelope) -> None:
        sender, head, message = envelope
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or self._waiting_bytes[sender] < UNREAD_LIMIT_MODELS * 4 * self._size + 4096
            )
            asks = self.handle if head.asks and head.epoch == self._epoch else None
            if asks is None and head.epoch >= self._epoch:
                self._envelopes.append(envelope)
                self._waiting_bytes[sender] += message.traffic_bytes
                self._changed.notify_all()
        if asks is not None:
            asks(envelope)

    def close(self) -> None:
        """End all connections."""
        with self._changed:
            self._closed = True
            send_queues = list(self._send_queues.values())
            self._changed.notify_all()
        for send_queue in send_queues:
            send_queue.close()
        for connection in list(self._incoming):
            connection.abort()
        self._acceptor.close()
