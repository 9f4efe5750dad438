"""Named tuples are read from JSON and written to files; errors name the key path.

Values are checked as those of messages are (``backends.protocol.json_messages``).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, TypeVar

from backends.protocol import json_messages
from planner.errors import MAKE_ROOM, RecordError
from profilers.records.json_values import SCHEMA, json_value
from profilers.regular_file import open_regular
from profilers.whole_file import whole_file

Record = TypeVar("Record")

REMEDY = "run the command that wrote it again"


def decode(cls: type[Record], value: object, where: str = "") -> Record:
    """The record of type ``cls`` in a JSON value; its ``check`` is called. Raises RecordError.

    cls: a NamedTuple of str, bool, int, float, Any, dict[str, X], tuple[X, ...], X | None and
        other such NamedTuples. One with a class method ``from_text`` is a text.
    where: path of ``value`` in its document, for messages.
    """
    try:
        return json_messages.record(cls, value, where)
    except ValueError as error:
        raise RecordError(str(error)) from None


def load(cls: type[Record], path: Path, remedy: str = REMEDY) -> Record:
    """Read a record from a JSON file.

    A record with a field ``schema`` must carry the one that this program writes. A method
    ``check`` of the record raises ValueError where its parts do not fit together.
    Raises RecordError naming the file, the line or key, and the remedy.
    """
    value = _read(path, remedy)
    try:
        if not isinstance(value, Mapping):
            raise RecordError(f"expected an object, found {str(value)[:60]}")
        found = value.get("schema")
        if "schema" in getattr(cls, "_fields", ()) and found not in (None, SCHEMA):
            raise RecordError(f"schema: written as {found!r}, this planner reads {SCHEMA}")
        return decode(cls, value)
    except RecordError as error:
        raise RecordError(f"{path}: {error}; {remedy}") from None


def save(record: object, path: Path) -> None:
    """Write a record as JSON, whole or not at all.

    Raises RecordError naming the path, the reason and the remedy; an older file stays as it was.
    """
    text = json.dumps(json_value(record), indent=1, allow_nan=False) + "\n"
    try:
        with whole_file(str(path)) as file:
            file.write(text.encode())
    except OSError as error:
        raise RecordError(f"cannot write {path}: {error.strerror or error}; {MAKE_ROOM}, and run again") from error


def _read(path: Path, remedy: str) -> object:
    try:
        return json.loads(_content(path).decode(), parse_constant=_refuse_constant)
    except RecursionError:
        raise RecordError(f"{path}: nested too deeply; {remedy}") from None
    except json.JSONDecodeError as error:
        raise RecordError(f"{path}, line {error.lineno}: not JSON ({error.msg}); {remedy}") from error
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: not text ({error.reason}); {remedy}") from error
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}; {remedy}") from error
    except RecordError as error:
        raise RecordError(f"{path}: {error}; {remedy}") from error
    except ValueError as error:  # of more digits than Python converts
        raise RecordError(f"{path}: {str(error).partition(';')[0]}; {remedy}") from error


def _content(path: Path) -> bytes:
    with open_regular(path) as stream:
        return stream.read()


def _refuse_constant(name: str) -> NoReturn:
    raise RecordError(f"{name} is not a JSON number")
