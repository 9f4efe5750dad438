"""A message is a named tuple that travels as JSON: an object or a list of its class and fields.

The operator and agents exchange objects, whose class is under ``type``. Members of a run, which run
the same code, exchange lists: the class and the values of the fields, nested ones also as lists.
"""

import functools
import itertools
import re
from typing import Any, Callable, Dict, Iterable, List, NoReturn, Sequence, Tuple, Type, TypeVar, Union, get_type_hints

from backends.protocol.ranges import range_of
from profilers.records.json_values import json_value

#: The key that tells a message's class; no message has a field of that name.
TYPE = "type"
#: How messages name the scalars of JSON.
_SCALARS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}

Record = TypeVar("Record")
#: Checks a value of JSON and converts it.
Reader = Callable[[Any], Any]


class _Refusal(ValueError):
    """A value that does not fit; ``path`` leads to it, innermost first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.path: List[str] = []

    def __str__(self) -> str:
        return "%s: %s" % ("".join(reversed(self.path)), self.args[0])


def name_of(kind: Type[Any]) -> str:
    """A class's name in messages: words in lower case, joined by underscores."""
    return _joined(kind.__name__)


@functools.lru_cache(maxsize=None)
def _joined(words: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", words).lower()


def encode(message: Any) -> Dict[str, Any]:
    """A message as a JSON object."""
    encoded: Dict[str, Any] = json_value(message)
    encoded[TYPE] = name_of(type(message))
    return encoded


def encode_list(message: Any) -> Tuple[Any, ...]:
    """A message as a JSON list, which takes half the time: in JSON tuples are lists."""
    return (name_of(type(message)), *message)


def decode(value: Any, kinds: Sequence[Type[Any]]) -> Any:
    """The message in a JSON object or list: one of these classes.

    Raises ValueError naming the unknown type, or the field that is missing, unknown or of another
    type.
    """
    name: Any = None
    if isinstance(value, dict):
        fields: Any = dict(value)
        name = fields.pop(TYPE, None)
    elif isinstance(value, list):
        name, fields = (value or [None])[0], value[1:]
    else:
        raise ValueError("message: expected an object or a list, found %s" % _short(value))
    for kind in kinds:
        if name_of(kind) == name:
            return record(kind, fields)
    expected = " or ".join(sorted(name_of(kind) for kind in kinds))
    raise ValueError("unknown message %r; expected %s" % (name, expected))


def record(kind: Type[Record], value: Any, where: str = "") -> Record:
    """The named tuple of this class in its fields. Raises ValueError as ``decode`` does.

    where: path of the value in its document; that of a message is its name.
    """
    cached: Any = kind
    try:
        result: Record = _reader(cached)(value)
    except _Refusal as refusal:
        refusal.path.append(where or name_of(kind))
        raise
    return result


@functools.lru_cache(maxsize=None)
def _reader(kind: Any, field: Tuple[str, str] = ("", "")) -> Reader:
    """The reader of ``kind``, made once: members read frames in every step.

    The kind is a named tuple, which may be written as a text, a scalar, Any, Optional[X],
    Dict[str, X], Tuple[X, ...] or Tuple[X, Y]; field: the names of the record and the field that it
    is in, by which numbers have a range.
    """
    origin = getattr(kind, "__origin__", None)
    args: Tuple[Any, ...] = getattr(kind, "__args__", None) or ()
    if kind is Any:
        return lambda value: value
    if origin is Union or type(kind).__name__ == "UnionType":  # X | None, which Python 3.6 has not
        inner = _reader(args[0], field)
        return lambda value: None if value is None else inner(value)
    if origin in (dict, Dict):  # the second in Python 3.6
        return _dict_reader(_reader(args[1], field))
    if args and args[-1] is Ellipsis:
        return _tuple_reader(itertools.repeat(_reader(args[0], field)))
    if args:
        return _tuple_reader([_reader(each, field) for each in args])
    if hasattr(kind, "from_text"):
        return _text_reader(kind)
    if hasattr(kind, "_fields"):
        return _record_reader(kind)
    return _number_reader(kind, field) if kind in (int, float) else _scalar_reader(kind)


def _read_each(readers: Iterable[Reader], values: Iterable[Any], place: str, keys: Sequence[Any]) -> List[Any]:
    """Read the parts of a value; a refusal names the place of its part."""
    made: List[Any] = []
    try:
        for read, value in zip(readers, values):
            made.append(read(value))
    except _Refusal as refusal:
        refusal.path.append(place % keys[len(made)])
        raise
    return made


def _dict_reader(inner: Reader) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            _refuse(value, "an object")
        return dict(zip(value, _read_each(itertools.repeat(inner), value.values(), ".%s", list(value))))

    return read


def _tuple_reader(readers: Iterable[Reader]) -> Reader:
    def read(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            _refuse(value, "a list")
        if isinstance(readers, list) and len(value) != len(readers):
            _refuse(value, "%d values" % len(readers))
        return tuple(_read_each(readers, value, "[%d]", range(len(value))))

    return read


def _text_reader(kind: Any) -> Reader:
    """Of a class that travels as a text, from which ``from_text`` makes it or raises ValueError."""

    def read(value: Any) -> Any:
        try:
            return kind.from_text(value if type(value) is str else _refuse(value, "a text"))
        except _Refusal:
            raise
        except ValueError as error:
            raise _Refusal(str(error)) from None

    return read


def _record_reader(kind: Any) -> Reader:
    """Of a class, whose method ``check`` raises ValueError where its parts do not fit together."""
    read = _fields_reader(kind)
    if not hasattr(kind, "check"):
        return read

    def checked(value: Any) -> Any:
        made = read(value)
        try:
            made.check()
        except ValueError as error:
            raise _Refusal(str(error)) from None
        return made

    return checked


def _fields_reader(kind: Any) -> Reader:
    names, defaults, hints = kind._fields, kind._field_defaults, get_type_hints(kind)
    readers = [_reader(hints[name], (kind.__name__, name)) for name in names]

    def read(value: Any) -> Any:
        if type(value) is list:
            if len(value) != len(names):
                _refuse(value, "an object or %d values" % len(names))
            return kind._make(_read_each(readers, value, ".%s", names))
        if type(value) is not dict:
            _refuse(value, "an object")
        if value.keys() != hints.keys():
            faults = ["missing %r" % name for name in names if name not in value and name not in defaults]
            faults += ["unknown %r" % name for name in value if name not in hints]
            if faults:
                raise _Refusal(", ".join(faults))
            given = [name for name in names if name in value]
            read_those = [reader for name, reader in zip(names, readers) if name in value]
            return kind(**dict(zip(given, _read_each(read_those, [value[name] for name in given], ".%s", given))))
        return kind._make(_read_each(readers, [value[name] for name in names], ".%s", names))

    return read


def _scalar_reader(kind: Any) -> Reader:
    def read(value: Any) -> Any:
        return value if type(value) is kind else _refuse(value, _SCALARS[kind])

    return read


def _number_reader(kind: Any, field: Tuple[str, str]) -> Reader:
    allowed = range_of(*field, kind is int)

    def read(value: Any) -> Any:
        if type(value) is not kind and not (kind is float and type(value) is int):
            _refuse(value, _SCALARS[kind])
        if not allowed.holds(value):
            _refuse(value, _SCALARS[kind] + allowed.text)
        try:
            return kind(value)
        except OverflowError:  # of 309 digits and more
            return _refuse(value, _SCALARS[kind])

    return read


def _refuse(value: Any, expected: str) -> NoReturn:
    raise _Refusal("expected %s, found %s" % (expected, _short(value)))


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) < 60 else shown[:57] + "..."
