"""Mistakes in a TOML text are reported with their lines, which tomllib does not give."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic_core import ErrorDetails

from planner.errors import suggest

Location = tuple[str, ...]
Mistake = tuple[Location, str]

_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")
_ITEM = re.compile(r"\s*\[\[\s*([^\[\]]+?)\s*\]\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)")


def repeated(text: str, parent: str) -> Iterator[tuple[str, int]]:
    """Tables ``[parent.NAME]`` that repeat an earlier one: name, line."""
    seen: Counter[Location] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.fullmatch(line)
        location = _parts(header[1]) if header else ()
        if len(location) == 2 and location[0] == parent:
            seen[location] += 1
            if seen[location] > 1:
                yield location[1], number


def lines_of(text: str) -> dict[Location, int]:
    """First line of each table and key, by location; ``[[name]]`` is name.0, name.1 and so on."""
    lines: dict[Location, int] = {}
    items: Counter[Location] = Counter()
    table: Location = ()
    for number, line in enumerate(text.splitlines(), 1):
        if item := _ITEM.fullmatch(line):
            name = _parts(item[1])
            table = (*name, str(items[name]))
            items[name] += 1
            lines.setdefault(table, number)
        elif header := _HEADER.fullmatch(line):
            table = _parts(header[1])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_parts(key[1])), number)
    return lines


def line_of(lines: Mapping[Location, int], where: Location) -> int:
    """The line of a key, or else of its table, or else the first line."""
    for length in range(len(where), 0, -1):
        if where[:length] in lines:
            return lines[where[:length]]
    return 1


def report(path: Path, text: str, mistakes: Iterable[Mistake]) -> str:
    """``path:line: table.key: what is wrong``, one a line in the order of the text."""
    lines = lines_of(text)
    located = sorted((line_of(lines, where), where, what) for where, what in mistakes)
    return "\n".join(f"{path}:{line}: {'.'.join(where)}: {what}" for line, where, what in located)


def not_toml(path: Path, text: str, message: str) -> str:
    """tomllib's message, after the path and line it refers to."""
    line = re.search(r"at line (\d+)", message)
    number = int(line[1]) if line else max(1, len(text.splitlines()))
    return f"{path}:{number}: not TOML: {message}"


def place(details: ErrorDetails) -> Location:
    """The location of a mistake in pydantic's terms."""
    return tuple(str(part) for part in details["loc"])


def explain(details: ErrorDetails, known: Iterable[str]) -> str:
    """The message for one error. known: the keys that its table may have."""
    kind = details["type"]
    if kind == "extra_forbidden":
        return f"unknown key; {suggest(place(details)[-1], known)}"
    if kind == "missing":
        return "is missing"
    if kind in ("dict_type", "model_type"):
        return f"should be a table, not {details['input']!r}"
    if kind == "value_error":
        return str(details["ctx"]["error"])
    return f"{details['msg'][:1].lower()}{details['msg'][1:]}, not {details['input']!r}"


def _parts(dotted: str) -> Location:
    return tuple(double or single or bare for double, single, bare in _PART.findall(dotted))
