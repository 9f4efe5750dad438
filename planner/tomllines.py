"""Where the tables and keys of a TOML text stand, which tomllib does not tell."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

Location = tuple[str, ...]

_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")
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
    """Where tables and keys stand: location -> line, the first of each."""
    lines: dict[Location, int] = {}
    table: Location = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _parts(header[1])
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_parts(key[1])), number)
    return lines


def line_of(lines: Mapping[Location, int], where: Location) -> int:
    """The line of the nearest thing that has one: the key, else its table, else the top."""
    for length in range(len(where), 0, -1):
        if where[:length] in lines:
            return lines[where[:length]]
    return 1


def _parts(dotted: str) -> Location:
    return tuple(double or single or bare for double, single, bare in _PART.findall(dotted))
