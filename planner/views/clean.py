"""This view shows what planner has left in the caches of devices."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from backends.protocol.events import CacheEntry
from planner.clean import Cache, CleanedCache
from planner.units import bytes_text, seconds
from planner.views.tables import TextTable, stack
from profilers.records.json_values import json_value

#: What each kind of entry is.
_KINDS = {
    "agent": "agents",
    "claims": "lists of agents that were killed",
    "data": "images",
    "file": "files of projects",
    "model": "model",
    "project": "project, and what was written there",
    "run": "checkpoint",
}
#: Kinds of which there may be many, none of interest by itself; they share a row.
_MANY = ("agent", "claims", "file")
_COLUMNS = ("place", "what", "name", "size", "unused for", "state")


def to_json(
    caches: Sequence[Cache], cleaned: Sequence[CleanedCache], errors: Mapping[str, Exception]
) -> dict[str, Any]:
    """What was in each cache, what of it is removed, and why devices were not reached, by name."""
    return {
        "caches": json_value(caches),
        "removed": {each.cache.devices[0]: [entry.name for entry in each.removed] for each in cleaned},
        "unreachable": {name: str(error) for name, error in errors.items()},
    }


def render(caches: Sequence[Cache]) -> RenderableType:
    """A row an entry, but one for all agents, and one for all files of projects."""
    removable = [entry for cache in caches for entry in cache.removable]
    title = f"left by planner: {_total(removable)} to remove" if removable else "nothing to remove"
    made = TextTable(title, _COLUMNS, left=("place", "what", "name", "state"), optional=("name", "unused for"))
    for cache in caches:
        for entries in _rows(cache.entries):
            first = entries[0]
            name = first.name if len(entries) == 1 else f"{len(entries):,} files"
            oldest = max(entry.unused_s for entry in entries)
            state = "in use: kept" if first.in_use else ""
            made.add_row(", ".join(cache.devices), _KINDS[first.kind], name, _total(entries), seconds(oldest), state)
    notes = [f"{cache.devices[0]}: a run under way uses some of {cache.folder}" for cache in caches if _is_used(cache)]
    return stack([made], notes) if made.rows else Text(title)


def render_cleaned(cleaned: Sequence[CleanedCache]) -> RenderableType:
    """How much was removed."""
    return Text(f"removed {_total(entry for each in cleaned for entry in each.removed)}")


def _total(entries: Iterable[CacheEntry]) -> str:
    return bytes_text(sum(entry.size_bytes for entry in entries))


def _is_used(cache: Cache) -> bool:
    return len(cache.removable) < len(cache.entries)


def _rows(entries: Sequence[CacheEntry]) -> list[list[CacheEntry]]:
    rows: dict[tuple[str, str, bool], list[CacheEntry]] = {}
    for entry in entries:
        rows.setdefault((entry.kind, "" if entry.kind in _MANY else entry.name, entry.in_use), []).append(entry)
    return list(rows.values())
