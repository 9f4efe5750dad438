"""An answer is a line of an agent, checked field by field; anything else is refused."""

import json
from typing import Any, NamedTuple

from backends.protocol.events import EVENTS
from backends.protocol.json_messages import decode, record

#: How the agent's first line begins.
HELLO = b'{"hello":'


class Hello(NamedTuple):
    """The agent's first line: its Python's version, and its process."""

    python: str
    pid: int

    @classmethod
    def read(cls, line: bytes) -> "Hello":
        """Raises ValueError naming what does not fit."""
        return record(cls, _object(line).get("hello"))


class Failure(NamedTuple):
    """An error over there: the name of its class, its text and its traceback."""

    kind: str
    message: str
    traceback: str


class Answer(NamedTuple):
    """One line about an order, or None for ``order`` where the agent only says that it lives.

    At most one of the others is there; with none of them the order has ended with the result None.
    blob: bytes that follow the line, the content of a file.
    """

    order: int | None
    event: Any = None
    failure: Failure | None = None
    result: Any = None
    blob: int | None = None

    @property
    def ends(self) -> bool:
        """Whether it is the last one of its order."""
        return self.event is None

    @classmethod
    def read(cls, line: bytes) -> "Answer":
        """Raises ValueError naming what does not fit."""
        message = _object(line)
        if "pong" in message:
            return cls(None)
        order, blob = message.get("id"), message.get("blob")
        if not _is_count(order) or not (blob is None or _is_count(blob)):
            raise ValueError(f"id or blob is no count: {_start(line)}")
        if "event" in message:
            return cls(order, event=decode(message["event"], EVENTS))
        if "error" in message:
            return cls(order, failure=record(Failure, message["error"]))
        return cls(order, result=message.get("result"), blob=blob)


def _object(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError(f"not JSON: {_start(line)}") from None
    if not isinstance(message, dict):
        raise ValueError(f"not a JSON object: {_start(line)}")
    return message


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _start(line: bytes) -> str:
    """Enough of a line to recognize it by."""
    return repr(line[:80].decode(errors="replace"))
