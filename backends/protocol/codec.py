"""A message is a named tuple that travels as a JSON object.

The object has its fields, and its class as ``type``.
"""

import re
from typing import Any, Dict, List, NoReturn, Sequence, Tuple, Type, TypeVar, Union, get_type_hints

from profilers import records

#: The key that tells a message's class; no message has a field of that name.
TYPE = "type"
#: How messages name the scalars of JSON.
_SCALARS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}

Record = TypeVar("Record")
_HINTS: Dict[Any, Dict[str, Any]] = {}


def name_of(kind: Type[Any]) -> str:
    """A class's name in messages: words in lower case, joined by underscores."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def encode(message: Any) -> Dict[str, Any]:
    """A message as a JSON object."""
    return dict(records.encode(message), **{TYPE: name_of(type(message))})


def decode(value: Any, kinds: Sequence[Type[Any]]) -> Any:
    """The message in a JSON object: one of these classes.

    Raises ValueError naming the unknown type, or the field that is missing, unknown or of another
    type.
    """
    known = {name_of(kind): kind for kind in kinds}
    if not isinstance(value, dict):
        _refuse("message", "an object", value)
    kind = known.get(str(value.get(TYPE)))
    if kind is None:
        raise ValueError("unknown message %r; expected %s" % (value.get(TYPE), " or ".join(sorted(known))))
    return record(kind, {key: each for key, each in value.items() if key != TYPE})


def record(kind: Type[Record], value: Any) -> Record:
    """The named tuple of this class in a JSON object. Raises ValueError as ``decode`` does."""
    result: Record = _decode(kind, value, name_of(kind))
    return result


def _decode(kind: Any, value: Any, where: str) -> Any:
    """The value as one of ``kind``.

    That is a named tuple, a scalar, Any, Optional[X], Dict[str, X], Tuple[X, ...] or Tuple[X, Y].
    """
    origin = getattr(kind, "__origin__", None)
    args: Tuple[Any, ...] = getattr(kind, "__args__", None) or ()
    if kind is Any:
        return value
    if origin is Union:
        return None if value is None else _decode(args[0], value, where)
    if origin in (dict, Dict):  # the second in Python 3.6
        _expect(value, dict, "an object", where)
        return {key: _decode(args[1], each, "%s.%s" % (where, key)) for key, each in value.items()}
    if origin in (tuple, Tuple):
        return _decode_tuple(args, value, where)
    if hasattr(kind, "_fields"):
        return _decode_record(kind, value, where)
    return _decode_scalar(kind, value, where)


def _decode_tuple(args: Tuple[Any, ...], value: Any, where: str) -> Any:
    _expect(value, (list, tuple), "a list", where)
    kinds: List[Any] = [args[0]] * len(value) if args[-1] is Ellipsis else list(args)
    if len(kinds) != len(value):
        _refuse(where, "%d values" % len(kinds), value)
    return tuple(_decode(kind, each, "%s[%d]" % (where, i)) for i, (kind, each) in enumerate(zip(kinds, value)))


def _decode_record(kind: Any, value: Any, where: str) -> Any:
    _expect(value, dict, "an object", where)
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    hints = _HINTS[kind]
    missing = [key for key in kind._fields if key not in value and key not in kind._field_defaults]
    unknown = [key for key in value if key not in kind._fields]
    if missing or unknown:
        faults = ["missing %r" % key for key in missing] + ["unknown %r" % key for key in unknown]
        raise ValueError("%s: %s" % (where, ", ".join(faults)))
    return kind(**{key: _decode(hints[key], each, "%s.%s" % (where, key)) for key, each in value.items()})


def _decode_scalar(kind: Any, value: Any, where: str) -> Any:
    accepted = (int, float) if kind is float else kind
    if isinstance(value, bool) and kind is not bool:
        _refuse(where, _SCALARS[kind], value)
    _expect(value, accepted, _SCALARS[kind], where)
    return float(value) if kind is float else value


def _expect(value: Any, accepted: Any, expected: str, where: str) -> None:
    if not isinstance(value, accepted):
        _refuse(where, expected, value)


def _refuse(where: str, expected: str, value: Any) -> NoReturn:
    shown = repr(value)
    raise ValueError("%s: expected %s, found %s" % (where, expected, shown if len(shown) < 60 else shown[:57] + "..."))
