"""Numbers in the cells of a table that others wrote, with decimal commas and thousands. Pure.

What a mark means is decided for a whole column: where one cell can only be read in one way, the
others follow it. A column in which no cell decides is refused rather than guessed.
"""

import re
from typing import Dict, List, Optional, Sequence, Tuple

SEPARATORS = "\t;,"
#: A number with any marks, and perhaps a unit behind it.
_FORM = re.compile(r"([-+]?)([\d.,]*\d[\d.,]*)([eE][-+]?\d{1,3})?\s*([A-Za-z/%\u00b0]{0,5})", re.ASCII)
#: Between groups of three digits beside "." and ",": spaces of several kinds, and apostrophes.
_GROUPING = re.compile("(?<=\\d)[ \u00a0\u2009\u202f'\u2019](?=\\d{3}(?!\\d))")
#: One mark that may be before decimals or after thousands: "1,234".
_EITHER = re.compile(r"[1-9]\d{0,2}[.,]\d{3}", re.ASCII)
_GROUPED = re.compile(r"\d{1,3}([.,])\d{3}(?:\1\d{3})*", re.ASCII)
_PLAUSIBLE = re.compile(r"\d+[.,]?|\d*[.,]\d+|\d{1,3}([.,])\d{3}(?:\1\d{3})*(?:[.,]\d*)?", re.ASCII)
_OTHER = {".": ",", ",": "."}


class CellError(ValueError):
    """A cell that cannot be read as a number for sure. index: its place in the column."""

    def __init__(self, index: int, cell: str, reason: str) -> None:
        super().__init__("%r %s" % (cell, reason))
        self.index = index


def separator_of(line: str) -> str:
    """What separates the cells of a line: tabs, else semicolons, else commas, outside of quotes."""
    bare = re.sub(r'"[^"]*"', "", line)
    return next((mark for mark in SEPARATORS if mark in bare), ",")


def column(cells: Sequence[str], separator: str) -> List[Optional[Tuple[float, str]]]:
    """(number, unit) of each cell; None for one that holds no digit, such as "" or "overload".

    separator: of the cells; a semicolon or a tab leaves the comma to decimals.
    Raises CellError for a cell with digits that is no number, or of which the marks do not tell.
    """
    forms = [_form(index, cell) for index, cell in enumerate(cells)]
    decimal = _decimal(cells, forms, separator)
    return [None if form is None else _number(index, cells[index], form, decimal) for index, form in enumerate(forms)]


def is_plausible(cell: str) -> bool:
    """Whether a cell looks like a number, unlike a version or a date."""
    form = _FORM.fullmatch(_GROUPING.sub("", cell.strip()))
    return form is not None and _PLAUSIBLE.fullmatch(form.group(2)) is not None


def _form(index: int, cell: str) -> "Optional[re.Match[str]]":
    text = _GROUPING.sub("", cell.strip())
    form = _FORM.fullmatch(text)
    if form is None and any(sign.isdigit() for sign in text):
        raise CellError(index, cell, "is no number")
    return form


def _decimal(cells: Sequence[str], forms: "Sequence[Optional[re.Match[str]]]", separator: str) -> str:
    """The mark before decimals in this column. Raises CellError where the cells do not tell."""
    decided: Dict[str, int] = {}
    either: Optional[int] = None
    whole = False
    for index, form in enumerate(forms):
        digits = form.group(2) if form else ""
        mark = _decimal_of(digits)
        if mark:
            decided.setdefault(mark, index)
        elif _EITHER.fullmatch(digits):
            either = index if either is None else either
        whole = whole or (digits.isdigit() and len(digits) >= 3)
    if len(decided) > 1:
        index = max(decided.values())
        raise CellError(index, cells[index], "has other marks than the cells above it")
    if decided:
        return next(iter(decided))
    if either is None:
        return "."
    mark = "," if "," in cells[either] else "."
    if separator == ",":
        if mark == ",":
            raise CellError(either, cells[either], "may be of thousands or have decimals; write it without a comma")
        return mark
    if whole:
        raise CellError(either, cells[either], "may be of thousands or have decimals; write it with one decimal more")
    return mark


def _decimal_of(digits: str) -> Optional[str]:
    """The mark before decimals of a number that can be read in one way only; None for others."""
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0 or _EITHER.fullmatch(digits):
        return None
    mark = digits[last]
    if digits.count(mark) > 1:
        return _OTHER[mark]
    return mark


def _number(index: int, cell: str, form: "re.Match[str]", decimal: str) -> Tuple[float, str]:
    sign, digits, exponent, unit = form.groups()
    before, _, after = digits.partition(decimal)
    grouping = _OTHER[decimal]
    if grouping in after or decimal in after or (grouping in before and not _GROUPED.fullmatch(before)):
        raise CellError(index, cell, "is no number")
    return float("%s%s.%s%s" % (sign, before.replace(grouping, "") or "0", after or "0", exponent or "")), unit
