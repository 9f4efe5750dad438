"""Named tuples are read from JSON and written to files; errors name the key path.

It is not pydantic's TypeAdapter, which also reads a record from a list, by position. Former keys
and texts of older files would need hooks in every record, and records of profilers/ run on
devices without pydantic.
"""

import contextlib
import json
import os
import tempfile
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from planner.errors import RecordError
from profilers import records

Record = TypeVar("Record")

REMEDY = "run the command that wrote it again"
#: What JSON values a scalar type takes, and words for them.
_SCALARS: dict[type, tuple[Any, str]] = {
    float: ((int, float), "a number"),
    int: (int, "a whole number"),
    str: (str, "a string"),
    bool: (bool, "true or false"),
}


def decode(cls: type[Record], value: object, where: str = "") -> Record:
    """The record of type ``cls`` in a JSON value. Raises RecordError.

    cls: a NamedTuple of str, bool, int, float, Any, dict[str, X], tuple[X, ...], X | None and
        other such NamedTuples. A class method ``from_text`` reads a text in its place, and
        ``former_keys`` gives the present names of fields by those in older files.
    where: path of ``value`` in its document, for messages.
    """
    return cast(Record, _decode(cls, value, where))


def load(cls: type[Record], path: Path, remedy: str = REMEDY) -> Record:
    """Read a record from a JSON file.

    A record with a field ``schema`` must carry the one that this program writes.
    Raises RecordError naming the file, the line or key, and the remedy.
    """
    value = _read(path, remedy)
    try:
        found = value.get("schema") if isinstance(value, Mapping) else None
        if "schema" in getattr(cls, "_fields", ()) and found not in (None, records.SCHEMA):
            raise RecordError(f"schema: written as {found!r}, this planner reads {records.SCHEMA}")
        return decode(cls, value)
    except RecordError as error:
        raise RecordError(f"{path}: {error}; {remedy}") from None


def save(record: object, path: Path) -> None:
    """Write a record as JSON, whole or not at all: a file beside it, flushed, then renamed.

    Raises RecordError naming the path, the reason and the remedy; an older file stays as it was.
    """
    text = json.dumps(records.encode(record), indent=1, allow_nan=False) + "\n"
    temporary = None
    try:
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False) as file:
            temporary = file.name
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise RecordError(
            f"cannot write {path}: {error.strerror or error}; make room or write access there, "
            "or choose another folder, and run again"
        ) from error


def _read(path: Path, remedy: str) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise RecordError(f"{path}, line {error.lineno}: not JSON ({error.msg}); {remedy}") from error
    except UnicodeDecodeError as error:
        raise RecordError(f"{path}: not text ({error.reason}); {remedy}") from error
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}; {remedy}") from error
    except RecordError as error:
        raise RecordError(f"{path}: {error}; {remedy}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise RecordError(f"{name} is not a JSON number")


def _decode(cls: Any, value: Any, where: str) -> Any:
    origin = get_origin(cls)
    if cls is Any:
        return value
    if origin in (Union, types.UnionType):
        (present,) = set(get_args(cls)) - {types.NoneType}
        return None if value is None else _decode(present, value, where)
    if origin is dict:
        _expect(value, isinstance(value, dict), "an object", where)
        item = get_args(cls)[1]
        return {key: _decode(item, each, _join(where, key)) for key, each in value.items()}
    if origin is tuple:
        _expect(value, isinstance(value, list), "a list", where)
        item = get_args(cls)[0]
        return tuple(_decode(item, each, f"{where}[{index}]") for index, each in enumerate(value))
    if hasattr(cls, "_fields"):
        return _decode_record(cls, value, where)
    kinds, expected = _SCALARS[cls]
    _expect(value, isinstance(value, kinds) and isinstance(value, bool) == (cls is bool), expected, where)
    return float(value) if cls is float else value


def _decode_record(cls: Any, value: Any, where: str) -> Any:
    if isinstance(value, str) and hasattr(cls, "from_text"):
        try:
            return cls.from_text(value)
        except ValueError as error:
            raise RecordError(f"{where or cls.__name__}: {error}") from None
    _expect(value, isinstance(value, dict), f"an object ({cls.__name__})", where)
    former = cls.former_keys() if hasattr(cls, "former_keys") else {}
    value = {former.get(key, key): each for key, each in value.items()}
    missing = [key for key in cls._fields if key not in value and key not in cls._field_defaults]
    extra = [key for key in value if key not in cls._fields]
    if missing or extra:
        faults = [f"missing {key!r}" for key in missing] + [f"unknown {key!r}" for key in extra]
        raise RecordError(f"{where or cls.__name__}: {', '.join(faults)}")
    hints = get_type_hints(cls)
    return cls(**{key: _decode(hints[key], each, _join(where, key)) for key, each in value.items()})


def _join(where: str, key: str) -> str:
    return f"{where}.{key}" if where else str(key)


def _expect(value: object, fits: bool, expected: str, where: str) -> None:
    if not fits:
        shown = repr(value)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        raise RecordError(f"{where or 'the document'}: expected {expected}, found {shown}")
