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
_OTHER = {".": ",", ",": "."}

Number = Tuple[float, str]


class CellError(ValueError):
    """A cell that cannot be read as a number for sure. index: its place in the column."""

    def __init__(self, index: int, cell: str, reason: str) -> None:
        super().__init__("%r %s" % (cell, reason))
        self.index = index


def separator_of(line: str) -> str:
    """What separates the cells of a line: tabs, else semicolons, else commas, outside of quotes."""
    bare = re.sub(r'"[^"]*"', "", line)
    return next((mark for mark in SEPARATORS if mark in bare), ",")


def number(cell: str, decimal: str = ".") -> Optional[Number]:
    """(number, unit) of a cell with this mark before its decimals; None where it is no number."""
    form = _form(cell)
    return form and _read(form, decimal)


def column(cells: Sequence[str], separator: str) -> List[Optional[Number]]:
    """(number, unit) of each cell; None for one that holds no digit, such as "" or "overload".

    separator: of the cells; between commas, a point is before decimals.
    Raises CellError for a cell with digits that is no number, or of which the marks do not tell.
    """
    forms = [_form(cell) for cell in cells]
    decimal = _decimal(cells, forms, separator)
    found = [form and _read(form, decimal) for form in forms]
    for index, (cell, each) in enumerate(zip(cells, found)):
        if each is None and any(sign.isdigit() for sign in cell):
            raise CellError(index, cell, "is no number")
    return found


def is_plausible(cell: str) -> bool:
    """Whether a cell looks like a number, unlike a version or a date."""
    return any(number(cell, mark) is not None for mark in _OTHER)


def _form(cell: str) -> "Optional[re.Match[str]]":
    return _FORM.fullmatch(_GROUPING.sub("", cell.strip()))


def _decimal(cells: Sequence[str], forms: "Sequence[Optional[re.Match[str]]]", separator: str) -> str:
    """The mark before decimals in this column. Raises CellError where the cells do not tell."""
    decided: Dict[str, int] = {}
    either: Dict[str, int] = {}
    for index, form in enumerate(forms):
        digits = form.group(2) if form else ""
        if form and _EITHER.fullmatch(digits) and not form.group(3):
            either.setdefault("," if "," in digits else ".", index)
        elif "," in digits or "." in digits:
            decided.setdefault(_decimal_of(digits), index)
    if len(decided) > 1:
        index = max(decided.values())
        raise CellError(index, cells[index], "has other marks than the cells above it")
    unsure = [index for mark, index in either.items() if (mark, separator) != (".", ",") or len(either) > 1]
    if unsure and not decided:
        cell = cells[unsure[0]]
        plain = re.sub("[.,]", "", cell)
        raise CellError(unsure[0], cell, "may be of thousands or have decimals; write %s, or one decimal more" % plain)
    return next(iter(decided), ".")


def _decimal_of(digits: str) -> str:
    """The mark before decimals of a number that can be read in one way only."""
    mark = digits[max(digits.rfind("."), digits.rfind(","))]
    return _OTHER[mark] if digits.count(mark) > 1 else mark


def _read(form: "re.Match[str]", decimal: str) -> Optional[Number]:
    sign, digits, exponent, unit = form.groups()
    before, _, after = digits.partition(decimal)
    grouping = _OTHER[decimal]
    if grouping in after or decimal in after or (grouping in before and not _GROUPED.fullmatch(before)):
        return None
    return float("%s%s.%s%s" % (sign, before.replace(grouping, "") or "0", after or "0", exponent or "")), unit
