"""Named tuples are read from JSON and written to files; errors name the key path.

pydantic checks the values, by a schema that is made from a record's types and from the ranges of
its fields (``backends.protocol.ranges``). It is not its TypeAdapter, which also reads a record from
a list, by position, and could not know which records are texts.
"""

import contextlib
import functools
import json
import os
import tempfile
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic_core import CoreSchema, ErrorDetails, SchemaValidator, ValidationError, core_schema

from backends.protocol.ranges import range_of
from planner.errors import MAKE_ROOM, RecordError
from profilers.records.json_values import SCHEMA, json_value

Record = TypeVar("Record")

REMEDY = "run the command that wrote it again"
#: What was expected, by the types of pydantic's errors.
_EXPECTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "a string",
    "bool_type": "true or false",
    "dict_type": "an object",
    "list_type": "a list",
}
#: Of a key that is not there, and of one that should not be.
_MISSING, _UNKNOWN = "missing", "extra_forbidden"


def decode(cls: type[Record], value: object, where: str = "") -> Record:
    """The record of type ``cls`` in a JSON value. Raises RecordError.

    cls: a NamedTuple of str, bool, int, float, Any, dict[str, X], tuple[X, ...], X | None and
        other such NamedTuples. One with a class method ``from_text`` is a text.
    where: path of ``value`` in its document, for messages.
    """
    try:
        return cast(Record, _validator(cast(Any, cls)).validate_python(value))
    except ValidationError as error:
        raise RecordError(_told(error.errors(include_url=False), where, getattr(cls, "__name__", str(cls)))) from None


def load(cls: type[Record], path: Path, remedy: str = REMEDY) -> Record:
    """Read a record from a JSON file.

    A record with a field ``schema`` must carry the one that this program writes. A method
    ``check`` of the record raises ValueError where its parts do not fit together.
    Raises RecordError naming the file, the line or key, and the remedy.
    """
    value = _read(path, remedy)
    try:
        found = value.get("schema") if isinstance(value, Mapping) else None
        if "schema" in getattr(cls, "_fields", ()) and found not in (None, SCHEMA):
            raise RecordError(f"schema: written as {found!r}, this planner reads {SCHEMA}")
        record = decode(cls, value)
        if hasattr(record, "check"):
            record.check()
        return record
    except (RecordError, ValueError) as error:
        raise RecordError(f"{path}: {error}; {remedy}") from None


def save(record: object, path: Path) -> None:
    """Write a record as JSON, whole or not at all: a file beside it, flushed, then renamed.

    Raises RecordError naming the path, the reason and the remedy; an older file stays as it was.
    """
    text = json.dumps(json_value(record), indent=1, allow_nan=False) + "\n"
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
        raise RecordError(f"cannot write {path}: {error.strerror or error}; {MAKE_ROOM}, and run again") from error


def _read(path: Path, remedy: str) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
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


def _refuse_constant(name: str) -> NoReturn:
    raise RecordError(f"{name} is not a JSON number")


@functools.cache
def _validator(cls: Any) -> SchemaValidator:
    found: dict[str, CoreSchema] = {}
    top = _schema(cls, ("", ""), found)
    return SchemaValidator(core_schema.definitions_schema(top, list(found.values())))


def _schema(cls: Any, field: tuple[str, str], found: dict[str, CoreSchema]) -> CoreSchema:
    """Of a type, whose numbers have the range of that field of a record, both by name.

    found: schemas of records by name; a record may hold others of its own kind.
    """
    origin, args = get_origin(cls), get_args(cls)
    if cls is Any:
        return core_schema.any_schema()
    if origin in (Union, types.UnionType):
        (present,) = set(args) - {types.NoneType}
        return core_schema.nullable_schema(_schema(present, field, found))
    if origin is dict:
        return core_schema.dict_schema(values_schema=_schema(args[1], field, found), strict=True)
    if origin is tuple:
        items = core_schema.list_schema(_schema(args[0], field, found), strict=True)
        return core_schema.no_info_after_validator_function(tuple, items)
    if hasattr(cls, "_fields"):
        name = f"{cls.__module__}.{cls.__qualname__}"
        if name not in found:
            found[name] = core_schema.any_schema()  # until it is made
            found[name] = _record_schema(cls, name, found)
        return core_schema.definition_reference_schema(name)
    if cls is str:
        return core_schema.str_schema(strict=True)
    if cls is bool:
        return core_schema.bool_schema(strict=True)
    number = core_schema.int_schema(strict=True) if cls is int else core_schema.float_schema(strict=True)
    return core_schema.no_info_after_validator_function(_in_range(field, cls is int), number)


def _in_range(field: tuple[str, str], whole: bool) -> Callable[[Any], Any]:
    allowed, kind = range_of(*field, whole), "a whole number" if whole else "a number"

    def check(value: Any) -> Any:
        if not allowed.holds(value):
            raise ValueError(f"expected {kind}{allowed.text}, found {_shown(value)}")
        return value

    return check


def _record_schema(cls: Any, name: str, found: dict[str, CoreSchema]) -> CoreSchema:
    if hasattr(cls, "from_text"):
        return core_schema.no_info_after_validator_function(
            cls.from_text, core_schema.str_schema(strict=True), ref=name
        )
    fields = {
        key: core_schema.typed_dict_field(
            _schema(hint, (cls.__name__, key), found), required=key not in cls._field_defaults
        )
        for key, hint in get_type_hints(cls).items()
    }
    made = core_schema.typed_dict_schema(fields, extra_behavior="forbid", strict=True)
    return core_schema.no_info_after_validator_function(lambda read: cls(**read), made, ref=name)


def _told(errors: Sequence[ErrorDetails], where: str, whole: str) -> str:
    """The first place where keys are missing or unknown, with all of these, or else any other.

    whole: what the document is called.
    """
    first = next((each for each in errors if each["type"] in (_MISSING, _UNKNOWN)), errors[0])
    if first["type"] not in (_MISSING, _UNKNOWN):
        return f"{_path(where, first['loc']) or f'the document ({whole})'}: {_reason(first)}"
    there = [each for each in errors if each["loc"][:-1] == first["loc"][:-1]]
    faults = [f"missing {each['loc'][-1]!r}" for each in there if each["type"] == _MISSING]
    faults += [f"unknown {each['loc'][-1]!r}" for each in there if each["type"] == _UNKNOWN]
    return f"{_path(where, first['loc'][:-1]) or whole}: {', '.join(faults)}"


def _reason(error: ErrorDetails) -> str:
    if "error" in error.get("ctx", {}):
        return str(error["ctx"]["error"])
    return f"expected {_EXPECTED.get(error['type'], error['msg'])}, found {_shown(error['input'])}"


def _shown(value: object) -> str:
    """Enough of a value to recognize it by."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _path(where: str, place: Sequence[int | str]) -> str:
    """Of a key, without the forms that a record may have."""
    for part in place:
        if isinstance(part, int):
            where += f"[{part}]"
        else:
            where += f".{part}" if where else part
    return where
