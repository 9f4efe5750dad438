"""An acceptor lets in members that introduce themselves, and says why it refuses others."""

import contextlib
import queue
import socket
import threading

import pytest

from backends.network import acceptor, framing
from backends.network.acceptor import Acceptor
from backends.protocol.frames import Done, Heartbeat, HeartbeatAnswer, HeartbeatHello, MailboxHello
from planner.agents.certificates import Authority
from tests.running import HANG_S

EPOCH = 7


class Entrance:
    """An acceptor of connections that begin with a ``MailboxHello``.

    ``served`` gets the name and the hello of every member, ``refused`` every reason.
    """

    def __init__(self, failure: str = "") -> None:
        self.authority = Authority()
        self.served, self.refused, self.beats = queue.Queue(), queue.Queue(), queue.Queue()
        self._failure = failure
        listener = framing.listen("127.0.0.1")
        self.port = listener.getsockname()[1]
        tls = framing.context(self.authority.identity(framing.SERVER), server_side=True)
        self.acceptor = Acceptor(
            listener, tls, HANG_S, MailboxHello, self._serve, self._beat,
            lambda event: self.refused.put(event.reason),
        )  # fmt: skip

    def _serve(self, connection, hello):
        self.served.put((connection.peer, hello))
        if self._failure:
            raise framing.WireError(self._failure)

    def _beat(self, name):
        self.beats.put(name)
        return EPOCH

    def connect(self, name="nano", authority=None):
        tls = framing.context((authority or self.authority).identity(name), server_side=False)
        return framing.connect("127.0.0.1", self.port, tls, HANG_S)

    def serves(self, name):
        """A member of this name is let in and served."""
        connection = self.connect(name)
        connection.send(MailboxHello())
        assert self.served.get(timeout=HANG_S) == (name, MailboxHello())
        return connection


@pytest.fixture
def entrance():
    made = Entrance()
    yield made
    made.acceptor.close()


def test_a_member_is_served_under_the_name_of_its_certificate_and_then_its_connection_ends(entrance):
    connection = entrance.serves("nano")
    with pytest.raises(framing.WireError, match="closed the connection"):
        connection.receive(Done)
    assert entrance.refused.empty()


def test_heartbeats_are_answered_with_the_epoch_and_not_served(entrance):
    connection = entrance.connect("tx2")
    connection.send(HeartbeatHello())
    connection.send(Heartbeat())
    assert connection.receive(HeartbeatAnswer).epoch == EPOCH
    assert entrance.beats.get_nowait() == "tx2"
    assert entrance.served.empty()
    connection.close()


def test_whoever_speaks_no_tls_is_refused_and_the_next_member_served(entrance):
    with socket.create_connection(("127.0.0.1", entrance.port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert "127.0.0.1: TLS handshake failed" in entrance.refused.get(timeout=HANG_S)
    entrance.serves("nano").close()


def test_a_member_that_begins_with_another_frame_is_refused(entrance):
    connection = entrance.connect("nano")
    connection.send(Done())
    assert "127.0.0.1: nano sent a frame that is not understood" in entrance.refused.get(timeout=HANG_S)
    assert entrance.served.empty()
    connection.close()


def test_whoever_connects_and_says_nothing_keeps_nobody_waiting(entrance):
    with socket.create_connection(("127.0.0.1", entrance.port)):
        entrance.serves("nano").close()


def test_however_many_say_nothing_a_member_gets_in_and_the_oldest_of_them_goes(entrance, monkeypatch):
    monkeypatch.setattr(acceptor, "MOST_STRANGERS", 3)
    with contextlib.ExitStack() as stack:
        address = ("127.0.0.1", entrance.port)
        silent = [stack.enter_context(socket.create_connection(address, HANG_S)) for _ in range(5)]
        entrance.serves("nano").close()
        assert [each.recv(1) for each in silent[:2]] == [b"", b""]
        assert "127.0.0.1: TLS handshake failed" in entrance.refused.get(timeout=HANG_S)


def test_where_the_system_allows_no_more_threads_a_connection_is_refused(entrance, monkeypatch):
    def fail(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        with socket.create_connection(("127.0.0.1", entrance.port)) as stranger:
            assert entrance.refused.get(timeout=HANG_S) == "127.0.0.1: can't start new thread"
            assert stranger.recv(1) == b""
    entrance.serves("nano").close()


def test_a_failure_while_a_member_is_served_is_said():
    entrance = Entrance(failure="its model is not the run's")
    entrance.serves("nano").close()
    assert entrance.refused.get(timeout=HANG_S) == "127.0.0.1: its model is not the run's"
    entrance.acceptor.close()


def test_nobody_gets_in_when_it_is_closed(entrance):
    entrance.acceptor.close()
    with pytest.raises(framing.WireError, match="cannot reach"):
        entrance.connect()
