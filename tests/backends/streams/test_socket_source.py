"""A device asks a producer for its samples, and again where the connection breaks."""

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.streams.record_frames import pack, pack_end
from backends.streams.socket_address import parse_address
from backends.streams.socket_source import SocketSource, introduction, read_introduction
from backends.streams.source import StreamRecord
from tests.running import HANG_S


def numbered(*offsets: int) -> list[StreamRecord]:
    return [StreamRecord(offset, b"sample %d" % offset) for offset in offsets]


class Producer:
    """Accepts one connection after the other, and sends what a test says."""

    def __init__(self, family: int, address: object) -> None:
        self._listener = socket.socket(family, socket.SOCK_STREAM)
        self._listener.bind(address)
        self._listener.listen()
        self._listener.settimeout(HANG_S)
        self.address = self._listener.getsockname()

    def accept(self) -> tuple[socket.socket, tuple[int, str]]:
        connection, _ = self._listener.accept()
        with connection.makefile("rb") as lines:
            return connection, read_introduction(lines.readline())

    def close(self) -> None:
        self._listener.close()


@pytest.fixture(params=["tcp", "unix"])
def producer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Producer, str]]:
    if request.param == "tcp":
        made = Producer(socket.AF_INET, ("127.0.0.1", 0))
        text = f"127.0.0.1:{made.address[1]}"
    else:
        made = Producer(socket.AF_UNIX, str(tmp_path / "s"))
        text = str(tmp_path / "s")
    yield made, text
    made.close()


def read(source: SocketSource, count: int) -> list[StreamRecord]:
    found: list[StreamRecord] = []
    while len(found) < count:
        found += source.read(1.0) or []
    return found


def in_thread(source: SocketSource, count: int) -> tuple[threading.Thread, list[StreamRecord]]:
    found: list[StreamRecord] = []
    thread = threading.Thread(target=lambda: found.extend(read(source, count)), daemon=True)
    thread.start()
    return thread, found


def test_samples_come_from_the_offset_that_was_asked_for_also_after_a_break(producer: tuple[Producer, str]) -> None:
    made, address = producer
    source = SocketSource(address, "tx2")
    source.begin(5)
    thread, found = in_thread(source, 2)
    connection, asked = made.accept()
    assert asked == (5, "tx2")
    connection.sendall(pack(numbered(4, 5, 6)))
    thread.join(HANG_S)
    assert found == numbered(5, 6)
    connection.close()
    with pytest.raises(OSError, match="the producer has closed the connection"):
        read(source, 1)
    thread, found = in_thread(source, 1)
    connection, asked = made.accept()
    assert asked == (7, "tx2")
    connection.sendall(pack(numbered(7)) + pack_end(8))
    thread.join(HANG_S)
    assert found == numbered(7)
    assert source.read(0.01) is None
    source.close()
    connection.close()


def test_nobody_there_and_nonsense_are_told_with_the_address(producer: tuple[Producer, str]) -> None:
    made, address = producer
    source = SocketSource(address, "tx2")
    source.begin(0)
    failures: list[str] = []

    def fail() -> None:
        try:
            read(source, 1)
        except OSError as error:
            failures.append(str(error))

    thread = threading.Thread(target=fail, daemon=True)
    thread.start()
    connection, _ = made.accept()
    connection.sendall(b"\xff" * 40)
    thread.join(HANG_S)
    made.close()
    assert "was announced" in failures[0] and address in failures[0]
    fail()
    assert address in failures[1]


@pytest.mark.parametrize("line", [b"", b"5\n", b"x tx2\n", b"5 tx2", b"-1 tx2\n", b"\xff\n"])
def test_an_introduction_of_another_form_is_refused(line: bytes) -> None:
    assert read_introduction(introduction(5, "tx2")) == (5, "tx2")
    with pytest.raises(ValueError, match="introduces itself"):
        read_introduction(line)


@pytest.mark.parametrize("text", ["host", "host:", ":5", "host:x", "host:0", "host:70000"])
def test_an_address_of_another_form_is_refused(text: str) -> None:
    assert parse_address("host:5") == ("host", 5) and parse_address("/run/s") == "/run/s"
    with pytest.raises(ValueError, match="HOST:PORT"):
        parse_address(text)
