"""The Python sender has the rates of its receiver; both end when the other is gone."""

import socket
import struct
import threading

import pytest

from backends.profiling import python_sender
from backends.profiling.probing import LinkError
from tests.running import HANG_S

TOKEN = "0123456789abcdef" * 2


class Receiver(threading.Thread):
    """``python_sender.receive`` in a thread, on a port of loopback."""

    def __init__(self, seconds=0.25):
        super().__init__()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.seconds = seconds
        self.error = None
        self.start()

    def run(self):
        with self.listener:
            try:
                python_sender.receive(self.listener, TOKEN, self.seconds, lambda: False)
            except LinkError as error:
                self.error = error


@pytest.fixture
def short_silence_limit(monkeypatch):
    monkeypatch.setattr(python_sender, "SILENCE_LIMIT_S", 0.5)


def test_the_sender_gets_the_rates_of_the_receiver():
    receiver = Receiver()
    rates = python_sender.send("127.0.0.1", receiver.port, TOKEN, 0.25)
    receiver.join()
    assert receiver.error is None
    assert rates
    assert min(rates) > 0


def test_a_connection_without_the_token_is_closed_and_the_sender_served():
    receiver = Receiver()
    with pytest.raises(LinkError):
        python_sender.send("127.0.0.1", receiver.port, "x" * len(TOKEN), 0.25)
    assert python_sender.send("127.0.0.1", receiver.port, TOKEN, 0.25)
    receiver.join()
    assert receiver.error is None


def test_a_receiver_without_a_sender_fails(short_silence_limit):
    receiver = Receiver()
    receiver.join()
    assert "nobody connected" in str(receiver.error)


@pytest.mark.parametrize("reset", [True, False])
def test_a_sender_that_dies_ends_the_receiver(reset):
    receiver = Receiver(seconds=30.0)
    with socket.create_connection(("127.0.0.1", receiver.port)) as sock:
        sock.sendall(TOKEN.encode() + bytes(1000))
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    receiver.join(HANG_S)
    assert not receiver.is_alive()
    assert "sender" in str(receiver.error)


def test_a_sender_that_falls_silent_ends_the_receiver(short_silence_limit):
    receiver = Receiver(seconds=30.0)
    with socket.create_connection(("127.0.0.1", receiver.port)) as sock:
        sock.sendall(TOKEN.encode())
        receiver.join(HANG_S)
    assert not receiver.is_alive()
    assert "lost the sender" in str(receiver.error)


@pytest.mark.parametrize("answer", [b"", b"{}]", b'["x"]'])
def test_a_receiver_that_ends_early_is_an_error(answer):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def end():
            sock, _ = listener.accept()
            with sock:
                sock.recv(len(TOKEN))
                sock.sendall(answer)

        thread = threading.Thread(target=end)
        thread.start()
        with pytest.raises(LinkError):
            python_sender.send("127.0.0.1", listener.getsockname()[1], TOKEN, 5.0)
        thread.join()


def test_a_receiver_that_reads_nothing_is_an_error(short_silence_limit):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(LinkError, match="no answer"):
            python_sender.send("127.0.0.1", port, TOKEN, 0.1)
