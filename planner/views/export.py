"""This view shows an exported model: what it takes and gives, and the lines that load it."""

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from backends.frameworks.batch_axes import TensorLike
from planner.export.export import Export
from planner.units import bytes_text
from profilers.records.json_values import json_value

#: Class names shown; the file has all of them.
SHOWN_CLASSES = 12


def to_json(exported: Export) -> dict[str, Any]:
    """The fields of ``Export``, and ``code``, its lines as one text."""
    return {**json_value(exported), "code": "\n".join(exported.lines) + "\n"}


def render(exported: Export) -> RenderableType:
    """The same for people; no line of the code is wrapped."""
    names = exported.classes[:SHOWN_CLASSES]
    more = len(exported.classes) - len(names)
    verb = "is" if len(exported.loads_with) == 1 else "are"
    facts = (
        f"{exported.path}: {exported.format}, {bytes_text(exported.bytes)}, "
        f"{exported.model} after {exported.step:,} steps",
        *(f"{path} belongs to it" for path in exported.files[1:]),
        *(f"takes {_text(each)}" for each in exported.inputs),
        *(f"gives {_text(each)}" for each in exported.outputs),
        *([f"classes: {', '.join(names)}" + (f" and {more} more" if more else "")] if names else []),
        *exported.notes,
        "",
        f"To load it where {' and '.join(exported.loads_with)} {verb} installed:",
        "",
    )
    code = (Text(f"    {line}", no_wrap=True, overflow="ignore") for line in exported.lines)
    return Group(*map(Text, facts), *code)


def _text(tensor: TensorLike) -> str:
    shape = ", ".join("any" if length is None else str(length) for length in tensor.shape)
    return f"{tensor.name}: {tensor.dtype} ({shape})"
