"""A message is a named tuple that travels as a JSON object.

The object has its fields, and its class as ``type``.
"""

import functools
import re
from typing import Any, Callable, Dict, List, NoReturn, Sequence, Tuple, Type, TypeVar, Union, get_type_hints

from profilers import records

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
    encoded = {
        key: value if type(value) in _SCALARS else records.encode(value) for key, value in zip(message._fields, message)
    }
    encoded[TYPE] = name_of(type(message))
    return encoded


def decode(value: Any, kinds: Sequence[Type[Any]]) -> Any:
    """The message in a JSON object: one of these classes.

    Raises ValueError naming the unknown type, or the field that is missing, unknown or of another
    type.
    """
    if not isinstance(value, dict):
        raise ValueError("message: expected an object, found %s" % _short(value))
    fields = dict(value)
    name = fields.pop(TYPE, None)
    for kind in kinds:
        if name_of(kind) == name:
            return record(kind, fields)
    expected = " or ".join(sorted(name_of(kind) for kind in kinds))
    raise ValueError("unknown message %r; expected %s" % (name, expected))


def record(kind: Type[Record], value: Any) -> Record:
    """The named tuple of this class in a JSON object. Raises ValueError as ``decode`` does."""
    cached: Any = kind
    result: Record = _within(name_of(kind), _reader(cached), value)
    return result


def _within(name: str, reader: Reader, value: Any) -> Any:
    """Read a part; a refusal names it."""
    try:
        return reader(value)
    except _Refusal as refusal:
        refusal.path.append(name)
        raise


@functools.lru_cache(maxsize=None)
def _reader(kind: Any) -> Reader:
    """The reader of ``kind``.

    That is a named tuple, a scalar, Any, Optional[X], Dict[str, X], Tuple[X, ...] or Tuple[X, Y].
    """
    origin = getattr(kind, "__origin__", None)
    args: Tuple[Any, ...] = getattr(kind, "__args__", None) or ()
    if kind is Any:
        return lambda value: value
    if origin is Union:
        inner = _reader(args[0])
        return lambda value: None if value is None else inner(value)
    if origin in (dict, Dict):  # the second in Python 3.6
        return _dict_reader(_reader(args[1]))
    if origin in (tuple, Tuple):
        return _tuple_reader(args)
    if hasattr(kind, "_fields"):
        return _record_reader(kind)
    return _scalar_reader(kind)


def _dict_reader(inner: Reader) -> Reader:
    def read(value: Any) -> Any:
        _expect(value, dict, "an object")
        return {key: _within("." + key, inner, each) for key, each in value.items()}

    return read


def _tuple_reader(args: Tuple[Any, ...]) -> Reader:
    many = args[-1] is Ellipsis
    readers: List[Reader] = [_reader(each) for each in args if each is not Ellipsis]

    def read(value: Any) -> Any:
        _expect(value, (list, tuple), "a list")
        if not many and len(value) != len(readers):
            _refuse(value, "%d values" % len(readers))
        of_each = readers * len(value) if many else readers
        return tuple(_within("[%d]" % i, inner, each) for i, (inner, each) in enumerate(zip(of_each, value)))

    return read


def _record_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    fields = [(key, hints[key], _reader(hints[key])) for key in kind._fields]
    defaults = kind._field_defaults

    def read(value: Any) -> Any:
        _expect(value, dict, "an object")
        if value.keys() != hints.keys():
            missing = ["missing %r" % key for key in kind._fields if key not in value and key not in defaults]
            faults = missing + ["unknown %r" % key for key in value if key not in hints]
            if faults:
                raise _Refusal(", ".join(faults))
            value = dict(defaults, **value)
        made = []
        for key, hint, inner in fields:
            each = value[key]  # most are scalars of the very type: frames are read in every step
            made.append(each if type(each) is hint else _within("." + key, inner, each))
        return kind._make(made)

    return read


def _scalar_reader(kind: Any) -> Reader:
    accepted = (int, float) if kind is float else kind

    def read(value: Any) -> Any:
        _expect(value, accepted, _SCALARS[kind])
        if isinstance(value, bool) and kind is not bool:
            _refuse(value, _SCALARS[kind])
        return kind(value)

    return read


def _expect(value: Any, accepted: Any, expected: str) -> None:
    if not isinstance(value, accepted):
        _refuse(value, expected)


def _refuse(value: Any, expected: str) -> NoReturn:
    raise _Refusal("expected %s, found %s" % (expected, _short(value)))


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) < 60 else shown[:57] + "..."
