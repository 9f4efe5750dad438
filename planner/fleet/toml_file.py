"""A TOML file is checked as a whole: every mistake is reported with its line and a remedy.

tomllib gives no lines of tables and keys, so they are searched for in the text.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from planner.errors import FleetError, suggest
from profilers.regular_file import open_regular

Location = tuple[str, ...]
Mistake = tuple[Location, str]

#: Characters of a mistake that is shown whole.
LONGEST_TEXT = 600
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_HEADER = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")
_ITEM = re.compile(r"\s*\[\[\s*([^\[\]]+?)\s*\]\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*((?:[\w-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)")


class TomlTable(BaseModel):
    """A table whose keys are all known and whose values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Context(NamedTuple):
    """What validators need of a file: its folder and the names of its devices."""

    folder: Path
    names: list[str]


File = TypeVar("File", bound=TomlTable)


def read_text(path: Path, missing: str) -> str:
    """The text of a file. Raises FleetError, which says ``missing`` where there is no file."""
    try:
        with open_regular(path) as stream:
            return stream.read().decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        raise FleetError(f"{path}: {missing}") from None
    except OSError as error:
        raise FleetError(f"{path} cannot be read: {error.strerror}; name a file that you may read") from error
    except UnicodeDecodeError as error:
        raise FleetError(f"{path}: cannot be read as UTF-8 text: {error}; save it as UTF-8") from error


def parse(
    model: type[File], tables: Mapping[str, type[TomlTable]], text: str, path: Path, example: str,
    more_mistakes: Callable[[dict[str, Any]], Iterable[Mistake]] = lambda table: (),
) -> File:  # fmt: skip
    """The content of a file with devices. Raises FleetError with every mistake, one a line.

    tables: the type of the tables below each key.
    example: the keys that a device must have, for a file without devices.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FleetError("\n".join(_repeated(text, path)) or _not_toml(path, text, str(error))) from error
    except RecursionError:
        raise FleetError(f"{path}: nested too deeply; write tables in tables as [devices.NAME]") from None
    except ValueError:  # of more digits than Python converts
        raise FleetError(f"{path}:{_line_of_long_number(text)}: a number has too many digits; shorten it") from None
    devices = table.get("devices")
    names = list(devices) if isinstance(devices, dict) else []
    rule = "a name has letters, digits, - and _, and starts with a letter or digit"
    mistakes: list[Mistake] = [(("devices", name), rule) for name in names if not _NAME.fullmatch(name)]
    mistakes += more_mistakes(table)
    try:
        file = model.model_validate(table, context=Context(path.parent, names))
    except ValidationError as error:
        mistakes += [(_location(details), _explain(details, model, tables, example)) for details in error.errors()]
    if mistakes:
        raise FleetError(_report(path, text, mistakes))
    return file


def _line_of_long_number(text: str) -> int:
    before = re.split(r"\d{1000}", text, maxsplit=1)[0]
    return before.count("\n") + 1


def _repeated(text: str, path: Path) -> Iterator[str]:
    seen: set[Location] = set()
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.fullmatch(line)
        location = _parts(header[1]) if header else ()
        if len(location) == 2 and location[0] == "devices":
            if location in seen:
                yield f"{path}:{number}: devices.{location[1]} is declared twice; rename one"
            seen.add(location)


def _not_toml(path: Path, text: str, message: str) -> str:
    line = re.search(r"at line (\d+)", message)
    number = int(line[1]) if line else max(1, len(text.splitlines()))
    return f"{path}:{number}: not TOML: {message}"


def _report(path: Path, text: str, mistakes: Iterable[Mistake]) -> str:
    """``path:line: table.key: what is wrong``, one a line in the order of the text."""
    lines = _lines_of(text)
    located = sorted((_line_of(lines, where), where, what) for where, what in mistakes)
    return "\n".join(f"{path}:{line}: {'.'.join(where)}: {_shortened(what)}" for line, where, what in located)


def _lines_of(text: str) -> dict[Location, int]:
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


def _line_of(lines: Mapping[Location, int], where: Location) -> int:
    """The line of a key, or else of its table, or else the first line."""
    return next((lines[where[:size]] for size in range(len(where), 0, -1) if where[:size] in lines), 1)


def _location(details: ErrorDetails) -> Location:
    return tuple(str(part) for part in details["loc"])


def _explain(details: ErrorDetails, model: type[TomlTable], tables: Mapping[str, type[TomlTable]], example: str) -> str:
    location, kind = _location(details), details["type"]
    if location == ("devices",) and kind in ("missing", "too_short"):
        absent = "there are no devices" if kind == "missing" else "is empty"
        return f"{absent}; add [devices.NAME] with {example}"
    if kind == "extra_forbidden":
        known = model if len(location) == 1 else tables[location[0]]
        return f"unknown key; {suggest(location[-1], known.model_fields)}"
    if kind == "missing":
        return "is missing"
    if kind in ("dict_type", "model_type"):
        return f"should be a table, not {_shown(details['input'])}"
    if kind == "value_error":
        return str(details["ctx"]["error"])
    return f"{details['msg'][:1].lower()}{details['msg'][1:]}, not {_shown(details['input'])}"


def _shown(value: Any) -> str:
    """A value as Python writes it."""
    try:
        return repr(value)
    except ValueError:  # of more digits than Python converts
        return "a number with too many digits"


def _shortened(text: str) -> str:
    """Both ends of a text that nobody would read whole."""
    return text if len(text) < LONGEST_TEXT else f"{text[: LONGEST_TEXT // 3]} … {text[-LONGEST_TEXT // 3 :]}"


def _parts(dotted: str) -> Location:
    return tuple(double or single or bare for double, single, bare in _PART.findall(dotted))
