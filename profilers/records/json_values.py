"""A record becomes plain JSON values; ``planner.json_records`` reads and checks them."""

from typing import Any

SCHEMA = 1


def json_value(value: Any) -> Any:
    """Plain JSON values of a record, recursively; a value with ``as_text`` becomes that text."""
    if value is None or type(value) in (int, float, str, bool):  # most are
        return value
    if hasattr(value, "as_text"):
        return value.as_text()
    if hasattr(value, "_fields"):
        return {key: json_value(item) for key, item in zip(value._fields, value)}
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return value
