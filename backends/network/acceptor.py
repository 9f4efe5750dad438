"""An acceptor takes connections of members, refuses all others and answers heartbeats."""

import socket
import ssl
import threading
from typing import Any, Callable, Dict, Type

from backends.network import framing
from backends.network.heartbeat import answer_heartbeats
from backends.network.refusals import Refusals
from backends.protocol.events import Emit
from backends.protocol.frames import HeartbeatHello

TICK_S = 0.2
#: Connections that may be about to introduce themselves at one time: each has a thread meanwhile.
#: One more ends the oldest, so that members get in however many there are who never speak.
MOST_STRANGERS = 512

Serve = Callable[[framing.Connection, Any], None]


class Acceptor:
    """Accepts on a listener until it is closed, a thread a connection.

    ``serve(connection, hello)`` is called with every connection that begins with a ``hello`` of
    this class, ``beat(name)`` at every heartbeat; it returns the epoch for the answer.
    """

    def __init__(
        self,
        listener: socket.socket,
        tls: ssl.SSLContext,
        limit_s: float,
        hello: Type[Any],
        serve: Serve,
        beat: Callable[[str], int],
        emit: Emit,
    ) -> None:
        self._listener = listener
        self._tls = tls
        self._limit_s = limit_s
        self._hello = hello
        self._serve = serve
        self._beat = beat
        self._refusals = Refusals(emit)
        self._strangers: "Dict[ssl.SSLSocket, None]" = {}  # the oldest first
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._listener.settimeout(TICK_S)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Stop accepting connections."""
        self._closed.set()
        self._accepting.join()
        self._listener.close()
        self._refusals.tell_counted(over=True)

    def _accept(self) -> None:
        while not self._closed.is_set():
            self._refusals.tell_counted()
            try:
                sock, address = self._listener.accept()
            except socket.timeout:
                continue
            except OSError as error:  # out of file descriptors, or a peer that has gone already
                self._refusals.add(str(error))
                self._closed.wait(TICK_S)
                continue
            self._begin(sock, address[0])

    def _begin(self, sock: socket.socket, address: str) -> None:
        """Hear what it wants in a thread of its own, if there can be one."""
        try:
            link = framing.wrapped(sock, self._tls, self._limit_s, server_side=True)
            self._make_room_for(link)
            threading.Thread(target=self._greet, args=(link, address), daemon=True).start()
        except framing.WireError as error:
            self._refusals.add("%s: %s" % (address, error))
        except RuntimeError as error:  # the system allows no more threads
            self._forget(link)
            link.close()
            self._refusals.add("%s: %s" % (address, error))

    def _make_room_for(self, link: ssl.SSLSocket) -> None:
        """Count it among those that have not introduced themselves, and end the oldest of many."""
        with self._lock:
            if len(self._strangers) >= MOST_STRANGERS:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
                framing.end(oldest)
            self._strangers[link] = None

    def _forget(self, link: ssl.SSLSocket) -> None:
        with self._lock:
            self._strangers.pop(link, None)

    def _greet(self, link: ssl.SSLSocket, address: str) -> None:
        try:
            try:
                connection = framing.shake_hands(link, self._limit_s)
                hello = self._hello_of(connection)
            finally:
                self._forget(link)
            self._attend(connection, hello)
        except framing.WireError as error:
            self._refusals.add("%s: %s" % (address, error))

    def _hello_of(self, connection: framing.Connection) -> Any:
        """How it introduces itself. Raises WireError, and closes the connection then."""
        try:
            return connection.receive(HeartbeatHello, self._hello)
        except framing.WireError:
            connection.close()
            raise

    def _attend(self, connection: framing.Connection, hello: Any) -> None:
        try:
            if isinstance(hello, HeartbeatHello):
                answer_heartbeats(connection, self._beat)
            else:
                self._serve(connection, hello)
        finally:
            connection.close()
