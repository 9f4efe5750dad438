"""The broker of Kafka that is built into librdkafka, on a real port, which can go and come back."""

import ctypes
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")

#: Functions of librdkafka with their results and arguments.
POINTER, NUMBER, TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
FUNCTIONS = {
    "conf_new": (POINTER, ()),
    "conf_set": (NUMBER, (POINTER, TEXT, TEXT, TEXT, ctypes.c_size_t)),
    "new": (POINTER, (NUMBER, POINTER, TEXT, ctypes.c_size_t)),
    "destroy": (None, (POINTER,)),
    "mock_cluster_new": (POINTER, (POINTER, NUMBER)),
    "mock_cluster_destroy": (None, (POINTER,)),
    "mock_cluster_bootstraps": (TEXT, (POINTER,)),
    "mock_broker_set_down": (NUMBER, (POINTER, ctypes.c_int32)),
    "mock_broker_set_up": (NUMBER, (POINTER, ctypes.c_int32)),
}
#: The kind of client that owns the broker, and the broker's number.
PRODUCER, ONLY = 0, 1


class Broker:
    """A context that is left with the broker. Its topics stay while it is gone.

    address: HOST:PORT.
    """

    def __init__(self) -> None:
        self._library = _librdkafka()
        settings = self._call("conf_new")
        assert self._call("conf_set", settings, b"log_level", b"0", None, 0) == 0
        self._owner = self._call("new", PRODUCER, settings, None, 0)
        assert self._owner, "librdkafka makes no client"
        self._cluster = self._call("mock_cluster_new", self._owner, 1)
        assert self._cluster, "librdkafka makes no broker"
        self.address = self._call("mock_cluster_bootstraps", self._cluster).decode()

    def __enter__(self) -> "Broker":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._call("mock_cluster_destroy", self._cluster)
        self._call("destroy", self._owner)

    def go(self) -> None:
        """End all connections and refuse new ones."""
        assert self._call("mock_broker_set_down", self._cluster, ONLY) == 0

    def come_back(self) -> None:
        assert self._call("mock_broker_set_up", self._cluster, ONLY) == 0

    def _call(self, name: str, *arguments: object) -> Any:
        function = getattr(self._library, f"rd_kafka_{name}")
        function.restype, function.argtypes = FUNCTIONS[name]
        return function(*arguments)


def host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def _librdkafka() -> ctypes.CDLL:
    """The library that the client has loaded, wherever that came from."""
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "librdkafka" in line}
    assert loaded, f"no librdkafka behind {confluent_kafka.__file__}"
    return ctypes.CDLL(loaded.pop())
