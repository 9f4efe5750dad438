"""Python that calls a model as it was called, with zeros in place of its tensors."""

from collections.abc import Mapping
from typing import Any, Callable, Optional


def call_text(value: Any, zeros: Callable[[Any], Optional[str]]) -> str:
    """Python for a value, in any nesting. zeros: for a tensor; None for what is none."""
    tensor = zeros(value)
    if tensor is not None:
        return tensor
    if isinstance(value, Mapping):
        return "{%s}" % ", ".join("%r: %s" % (key, call_text(each, zeros)) for key, each in value.items())
    if isinstance(value, (tuple, list)):
        parts = ", ".join(call_text(each, zeros) for each in value)
        return "[%s]" % parts if isinstance(value, list) else "(%s%s)" % (parts, "," * (len(value) == 1))
    return repr(value)
