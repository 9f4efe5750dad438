"""An acceptor takes connections of members, refuses all others and answers heartbeats."""

import socket
import ssl
import threading
from typing import Any, Callable, Type

from backends.network import framing
from backends.network.heartbeat import answer_heartbeats
from backends.protocol.events import Emit, Refused
from backends.protocol.frames import HeartbeatHello

TICK_S = 0.2

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
        self._emit = emit
        self._closed = threading.Event()
        self._listener.settimeout(TICK_S)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Stop accepting connections."""
        self._closed.set()
        self._accepting.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                sock, address = self._listener.accept()
            except socket.timeout:
                continue
            except OSError as error:  # out of file descriptors, or a peer that has gone already
                self._emit(Refused(str(error)))
                self._closed.wait(TICK_S)
                continue
            threading.Thread(target=self._greet, args=(sock, address[0]), daemon=True).start()

    def _greet(self, sock: socket.socket, address: str) -> None:
        try:
            connection = framing.accept(sock, self._tls, self._limit_s)
        except framing.WireError as error:
            self._emit(Refused("%s: %s" % (address, error)))
            return
        try:
            hello = connection.receive(HeartbeatHello, self._hello)
            if isinstance(hello, HeartbeatHello):
                answer_heartbeats(connection, self._beat)
            else:
                self._serve(connection, hello)
        except framing.WireError as error:
            self._emit(Refused("%s: %s" % (address, error)))
        finally:
            connection.close()
