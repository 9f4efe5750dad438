"""The one form of all tables, and the one label of everything that is emulated."""

from collections.abc import Collection, Sequence

from rich.box import Box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

EMULATED_NOTE = "* emulated: slowed down or modelled, so its times and watts are no real device's"

#: Nothing but a line below the header, so that more fits into 80 columns.
BOX = Box("    \n    \n ─  \n    \n    \n    \n    \n    \n")


def table(title: str, columns: Sequence[str], left: Collection[str] = ()) -> Table:
    """An empty table. Columns hold numbers, aligned right and never wrapped, those on the ``left`` words."""
    made = Table(title=title, title_justify="left", box=BOX, show_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        words = column in left
        made.add_column(column, justify="left" if words else "right", no_wrap=not words, overflow="fold")
    return made


def stack(tables: Sequence[Table], notes: Sequence[RenderableType]) -> Group:
    """Tables above notes, each table with an empty line below."""
    spaced = (part for each in tables for part in (each, Text()))
    return Group(*spaced, *notes)


def marked(names: Sequence[str], stand_ins: Collection[str], between: str = " ") -> str:
    """Names in a row, with the mark that EMULATED_NOTE explains on those that are emulated."""
    return between.join(f"{name}*" if name in stand_ins else name for name in names)
