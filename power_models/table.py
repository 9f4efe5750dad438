"""A table of measurements has columns of numbers and of words, read from CSV."""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from profilers import column_units, number_cells, text_files

Floats = NDArray[np.float64]
Words = NDArray[np.str_]
Ints = NDArray[np.intp]
Column = Floats | Words

#: What loggers write where they could not read a value.
MISSING = frozenset({"", "-", "nan", "none", "null", "n/a", "na", "[n/a]", "[not supported]", "not_supported"})
#: A column holds numbers where at least this share of its values can be read as such.
READABLE = 0.8


@dataclass(frozen=True)
class Table:
    """Columns of equal length by name: numbers (float64, NaN where missing) or words."""

    columns: Mapping[str, Column]

    @classmethod
    def of(cls, cells: Mapping[str, Sequence[object]]) -> "Table":
        """From any values: a column becomes numbers where nearly all of it can be read as such."""
        texts = {name: ["" if value is None else str(value) for value in values] for name, values in cells.items()}
        return cls({name: _column(column) for name, column in texts.items()})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def rows(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)

    def numbers(self, name: str) -> Floats:
        """A column as numbers. Words are NaN."""
        column = self.columns[name]
        return np.asarray(column, dtype=np.float64) if is_numeric(column) else np.full(len(column), math.nan)

    def only(self, names: Iterable[str]) -> "Table":
        """These columns. Raises ValueError, with the names in the table, for a missing one."""
        wanted = tuple(names)
        if absent := [name for name in wanted if name not in self.columns]:
            raise ValueError(f"there is no column {', '.join(absent)}; there are {', '.join(self.names)}")
        return Table({name: self.columns[name] for name in wanted})

    def take(self, rows: Ints) -> "Table":
        """These rows, in this order."""
        return Table({name: column[rows] for name, column in self.columns.items()})

    def keys(self, names: Iterable[str]) -> Ints:
        """One number a row, the same for rows that agree in all these columns."""
        codes = [np.unique(column, return_inverse=True)[1] for column in self.only(names).columns.values()]
        return np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)[1].reshape(-1)


@dataclass(frozen=True)
class CsvFile:
    """The cells of a CSV file as they were written, and the line that each row stands in."""

    name: str
    cells: Mapping[str, list[str]]
    lines: list[int]

    def table(self) -> Table:
        return Table.of(self.cells)

    def positive(self, column: str) -> Floats:
        """A column as numbers above zero. Raises ValueError with the first line that has none."""
        if column not in self.cells:
            raise ValueError(f"{self.name}: there is no column {column}; there are {', '.join(self.cells)}")
        values = np.array([as_number(text) for text in self.cells[column]])
        if (wrong := np.flatnonzero(~(values > 0))).size:
            row = int(wrong[0])
            found = self.cells[column][row].strip() or "missing"
            raise ValueError(f"{self.name}: line {self.lines[row]}: {column} is {found}; give a number above zero")
        return values


def read_csv(path: Path) -> CsvFile:
    """Read a file with a header. Raises OSError, and ValueError for no CSV file or a cut one."""
    text = text_files.read_text(str(path))
    first = text.partition("\n")[0]
    separator = number_cells.separator_of(first)
    if "\0" in text or separator not in first:
        raise ValueError(f"{path}: not a CSV file: its first line should name several columns, separated by commas")
    reader = csv.reader(io.StringIO(text), delimiter=separator, strict=True)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise ValueError(f"{path}: line {reader.line_num}: not a CSV file: {error}") from None
    if len(rows) < 2:
        raise ValueError(f"{path}: there is no row below the header")
    header = _unique([name.strip() for name in rows[0][1]])
    header = header[: len(header) - (header[-1] == "")]
    for line, row in rows[1:]:
        if row[len(header) :] == [""]:
            row.pop()  # what a separator at the end of the line makes
        if len(row) != len(header):
            raise ValueError(f"{path}: line {line} has {len(row)} of {len(header)} columns; is the file cut off?")
    cells = {name: [row[i] for _, row in rows[1:]] for i, name in enumerate(header)}
    lines = [line for line, _ in rows[1:]]
    for name, column in cells.items():
        try:
            cells[name] = _with_points(name, column, separator)
        except number_cells.CellError as error:
            raise ValueError(f"{path}: line {lines[error.index]}: {name}: {error}") from None
    return CsvFile(str(path), cells, lines)


def _with_points(name: str, cells: list[str], separator: str) -> list[str]:
    """A column of numbers as Python writes them: no commas, one unit. Raises CellError."""
    given = [text for text in cells if text.strip().lower() not in MISSING]
    if sum(map(number_cells.is_plausible, given)) < READABLE * len(given):
        return cells
    found = number_cells.column([cell if number_cells.is_plausible(cell) else "" for cell in cells], separator)
    return [
        cell if number is None else repr(number[0] * scale)
        for cell, number, scale in zip(cells, found, _scales(name, cells, found), strict=True)
    ]


def _scales(name: str, cells: list[str], numbers: Sequence[number_cells.Number | None]) -> list[float]:
    """What brings each number to the unit that its column names, else to that of the first one.

    Raises CellError for a number that is of another quantity.
    """
    own = column_units.unit(name)
    units = [number[1] or own if number else "" for number in numbers]
    wanted = own or next((unit for number, unit in zip(numbers, units, strict=True) if number), "")
    scales = []
    for index, (number, unit) in enumerate(zip(numbers, units, strict=True)):
        scale = column_units.scale(unit, wanted) if number else 1.0
        if scale is None or (scale != 1.0 and not own):
            raise number_cells.CellError(index, cells[index], f"is in another unit than its column, {wanted!r}")
        scales.append(scale)
    return scales


def _column(texts: Sequence[str]) -> Column:
    values = np.array([as_number(text) for text in texts], dtype=np.float64)
    given = [text.strip().lower() not in MISSING for text in texts]
    if np.isfinite(values).sum() >= READABLE * sum(given):
        return values
    return np.array([text.strip() for text in texts], dtype=np.str_)


def as_number(text: str) -> float:
    """The number in a cell with a decimal point, without its unit; NaN where there is none."""
    found = number_cells.number(text)
    return found[0] if found and math.isfinite(found[0]) else math.nan


def is_numeric(column: Column) -> bool:
    """Whether a column holds numbers."""
    return column.dtype.kind == "f"


def _unique(header: Sequence[str]) -> list[str]:
    """Names without repetition: the second "x" is "x.1"."""
    names: list[str] = []
    for name in header:
        count, made = 0, name
        while made in names:
            count += 1
            made = f"{name}.{count}"
        names.append(made)
    return names
