"""Files of a project that a job's code names in its texts, such as its settings."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath

#: Endings of files that a folder's name, or their own without the ending, is enough for.
SETTINGS = (".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".txt")


def named_files(paths: Iterable[str], texts: Collection[str]) -> Iterator[str]:
    """The paths that the texts name, by a name or the end of one, as in ``f"{size}.yaml"``."""
    parts = {part.lstrip("*") for text in texts for part in text.split("/")}
    ends = tuple(part for part in parts if "." in part.rstrip("."))
    for path in map(PurePosixPath, paths):
        by_place = path.suffix in SETTINGS and not parts.isdisjoint((path.stem, *path.parent.parts))
        if by_place or path.name.endswith(ends):
            yield str(path)
