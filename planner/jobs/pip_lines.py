"""The lines of a requirements.txt as pip reads them: joined, without comments, with those included.

Source: pip's documentation, "Requirements File Format".
"""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from planner.errors import PlanError
from profilers import text_files
from profilers.regular_file import open_regular

_COMMENT = re.compile(r"(^|\s+)#.*$")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")
#: Options behind a requirement, such as its hashes.
_OPTIONS = re.compile(r"\s--?[A-Za-z].*$", re.DOTALL)
_INCLUDING = {"-r": False, "--requirement": False, "-c": True, "--constraint": True}
_EDITABLE = ("-e", "--editable")
#: Options that tell where packages come from, perhaps with a password in their value.
SOURCES = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--no-index")
_ARCHIVES = (
    ".whl", ".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".txz", ".tar.lz", ".tlz", ".tar.lzma",
)  # fmt: skip
_COMMENT_LINE = re.compile(r"\s*#")
_CODING = re.compile(rb"#.*coding[:=]\s*([-\w.]+)")


class PipLine(NamedTuple):
    """A requirement, or what pip alone can tell the name of.

    where: file and number of the first line. constrains: it is in a file of constraints.
    """

    where: str
    text: str
    constrains: bool = False

    @property
    def is_location(self) -> bool:
        """Whether this is a path or a URL without a name before it."""
        text = self.text.partition(";")[0].strip()
        if " @ " in text or re.match(r"[\w.-]+(\[[^\]]*\])?@", text):
            return False
        path = text.partition("[")[0]
        return "://" in text or text.startswith((".", "file:")) or os.sep in path or path.lower().endswith(_ARCHIVES)


def read(path: Path, constrains: bool = False, above: tuple[Path, ...] = ()) -> Iterator[PipLine]:
    """All requirements of a file and of the files that it includes.

    Of SOURCES only the option is told; other options for the whole file are left to pip. Raises
    PlanError naming the line of a file that cannot be read, or that includes itself.
    """
    for number, text in _logical_lines(_text(path)):
        where = f"{path}:{number}"
        option, value = _option(text)
        if option in _INCLUDING:
            yield from _included(path, where, value, constrains or _INCLUDING[option], (*above, path.resolve()))
        elif option in _EDITABLE:
            yield PipLine(where, f"-e {value}", constrains)
        elif option in SOURCES:
            yield PipLine(where, option, constrains)
        elif option is None:
            yield PipLine(where, _OPTIONS.sub("", text).strip(), constrains)


def _included(path: Path, where: str, value: str, constrains: bool, above: tuple[Path, ...]) -> Iterator[PipLine]:
    if "://" in value:
        yield PipLine(where, f"-{'c' if constrains else 'r'} {value}", constrains)
        return
    inner = path.parent / value
    if not inner.is_file():
        raise PlanError(f"{where}: there is no file {inner}; mend the line")
    if inner.resolve() in above:
        raise PlanError(f"{where}: {inner} includes itself; take the line out")
    yield from read(inner, constrains, above)


def _option(text: str) -> tuple[str | None, str]:
    """An option of pip and its value; None for a requirement."""
    match = re.match(r"(--[\w-]+|-\w)[=\s]*(.*)", text, re.DOTALL)
    if match is None:
        return None, text
    name, value = match.groups()
    try:
        words = shlex.split(value)
    except ValueError:
        words = [value]
    return name, words[0] if words else ""


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of the first line, text) of each line; those that end in a backslash are joined."""
    begun, first = "", 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        first = first if begun else number
        is_comment = _COMMENT_LINE.match(line)
        if line.endswith("\\") and not is_comment:
            begun += line[:-1]
            continue
        whole = _COMMENT.sub("", begun + " " * bool(is_comment) + line).strip()
        begun = ""
        if whole:
            yield first, _VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), whole)


def _text(path: Path) -> str:
    """The text of a file; a comment in its first two lines may name its encoding."""
    try:
        with open_regular(str(path)) as stream:
            content = stream.read()
        _, mark_bytes = text_files.encoding_of(content)
        named = next(filter(None, map(_CODING.match, content.splitlines()[:2])), None)
        return text_files.decode(content, str(path), named[1].decode() if named and not mark_bytes else None)
    except LookupError as error:
        raise PlanError(f"{path}: {error}; save it as UTF-8") from error
    except (OSError, ValueError) as error:
        raise PlanError(f"{path} cannot be read: {error}" if isinstance(error, OSError) else str(error)) from error
