"""This module lays out every table on screen, so that it is readable at any width.

A table takes as little of the width as its cells need. Where the screen is narrower than that:

1. columns of words wrap, to ``WRAPPED_WIDTH`` or to their longest word;
2. optional columns are left out one by one, and a line below the table names them;
3. each row becomes a block with one line a cell, in which nothing is left out.

Lines have no trailing spaces. In a file or a pipe the width has no limit (``console.show``).
"""

from collections.abc import Collection, Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from planner.terminal import visible

EMULATED_NOTE = "* emulated, no real device"

#: Between two columns.
GAP = "  "
#: A column of words wraps down to this width before an optional column is left out.
WRAPPED_WIDTH = 24
#: A value in a block is never folded to less than this.
LEAST_BLOCK_WIDTH = 16

Cell = str | Text


class TextTable:
    """A title, columns and rows; a rich renderable.

    left: columns of words, aligned left, which may wrap; the others hold numbers, aligned right.
    optional: columns left out where the screen is too narrow, the first named first.
    """

    def __init__(
        self, title: str, columns: Sequence[str], left: Collection[str] = (), optional: Sequence[str] = ()
    ) -> None:
        assert len({*columns}) == len(columns), f"two columns have the same title: {columns}"
        assert {*left, *optional} <= {*columns}, f"not among the columns {columns}: {left}, {optional}"
        self.title = title
        self.columns = list(columns)
        self.rows: list[list[Text]] = []
        self._words = {index for index, column in enumerate(columns) if column in left}
        self._optional = [columns.index(column) for column in optional]

    def add_row(self, *cells: Cell) -> None:
        """Add a row with one cell a column."""
        assert len(cells) == len(self.columns), f"{len(cells)} cells in a table of {len(self.columns)} columns"
        self.rows.append([cell if isinstance(cell, Text) else Text(visible(cell)) for cell in cells])

    @property
    def full_width(self) -> int:
        """The width at which nothing wraps and nothing is left out."""
        return _total(self._natural(index) for index in range(len(self.columns)))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        if self.title:
            yield Text(self.title, style="bold")
        widths = self._widths(width)
        if widths is None:
            yield from self._blocks(console, width)
            return
        yield from self._lines(console, widths)
        hidden = [column for index, column in enumerate(self.columns) if index not in widths]
        if hidden:
            yield Text(f"not shown: {', '.join(hidden)} (needs {self.full_width} columns)", style="dim")

    def _widths(self, width: int) -> dict[int, int] | None:
        """Widths of the columns shown, by index; None where the essential ones do not fit."""
        shown = {index: self._natural(index) for index in range(len(self.columns))}
        for hidden in (None, *self._optional):
            if hidden is not None:
                del shown[hidden]
            least = {index: self._least(index, WRAPPED_WIDTH) for index in shown}
            if _total(least.values()) <= width:
                return _widened(least, shown, width)
        least = {index: self._least(index, 0) for index in shown}
        return _widened(least, shown, width) if _total(least.values()) <= width else None

    def _natural(self, index: int) -> int:
        return max(cell_len(self.columns[index]), *(cell.cell_len for cell in self._cells(index)), 0)

    def _least(self, index: int, wrapped: int) -> int:
        """The width that a column needs: wrapped where it holds words."""
        if index not in self._words:
            return self._natural(index)
        texts = [self.columns[index], *(cell.plain for cell in self._cells(index))]
        longest_word = max((cell_len(word) for text in texts for word in text.split()), default=0)
        return min(self._natural(index), max(longest_word, wrapped))

    def _cells(self, index: int) -> list[Text]:
        return [row[index] for row in self.rows]

    def _lines(self, console: Console, widths: dict[int, int]) -> Iterable[Text]:
        """The header, a rule below it, and the rows."""
        header = [Text(column, style="bold") for column in self.columns]
        rule = [Text("─" * widths.get(index, 0)) for index in range(len(self.columns))]
        for row in (header, rule, *self.rows):
            cells = [row[index].wrap(console, width) for index, width in widths.items()]
            for number in range(max(map(len, cells))):
                parts = (
                    _aligned(cell[number] if number < len(cell) else Text(), width, index in self._words)
                    for cell, (index, width) in zip(cells, widths.items(), strict=True)
                )
                yield _line(parts)

    def _blocks(self, console: Console, width: int) -> Iterable[Text]:
        """A block a row: its first cell, and below it the titles and values of the others."""
        titles = max(map(cell_len, self.columns[1:]), default=0)
        room = max(LEAST_BLOCK_WIDTH, width - titles - 2 * len(GAP))
        for row in self.rows:
            yield Text(f"{self.columns[0]} ").append_text(row[0]) if self.columns[0] else row[0]
            for column, cell in zip(self.columns[1:], row[1:], strict=True):
                for number, part in enumerate(cell.wrap(console, room)):
                    title = _aligned(Text("" if number else column), titles, left=True)
                    yield _line((Text(), title, part))


def stack(tables: Sequence[RenderableType], notes: Sequence[str | Text]) -> Group:
    """Tables above notes, each table with an empty line below."""
    spaced = (part for each in tables for part in (each, Text()))
    return Group(*spaced, *notes)


def marked(names: Sequence[str], stand_ins: Collection[str], between: str = " ") -> str:
    """Names in a row, with the mark that EMULATED_NOTE explains on those that are emulated."""
    return between.join(f"{name}*" if name in stand_ins else name for name in names)


def _total(widths: Iterable[int]) -> int:
    """Width of a line of such columns."""
    listed = list(widths)
    return sum(listed) + len(GAP) * (len(listed) - 1)


def _widened(least: dict[int, int], natural: dict[int, int], width: int) -> dict[int, int]:
    """Columns that wrap share the width that is left, those that need least first."""
    free = width - _total(least.values())
    widths = dict(least)
    needs = sorted((natural[index] - least[index], index) for index in least)
    for place, (need, index) in enumerate(needs):
        extra = min(need, free // (len(needs) - place))
        widths[index] += extra
        free -= extra
    return widths


def _aligned(cell: Text, width: int, left: bool) -> Text:
    cell = cell.copy()
    cell.rstrip()
    missing = width - cell.cell_len
    return cell + Text(" " * missing) if left else Text(" " * missing) + cell


def _line(parts: Iterable[Text]) -> Text:
    line = Text(GAP, end="").join(parts)
    line.rstrip()
    line.no_wrap, line.overflow, line.end = True, "ignore", "\n"
    return line
