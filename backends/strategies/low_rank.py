"""A matrix is sent as two thin ones whose product it nearly is; other arrays are sent as they are.

A table tells what is behind a message's values, with a row for each variable: its first element,
rows, columns and rank. Of rank 0 are the elements themselves, else (rows, rank) and (columns, rank)
numbers follow, one after the other.
"""

from typing import List, Sequence, Tuple

import numpy as np

#: A row of the table.
Entry = Tuple[int, int, int, int]


def matrix_shape(shape: Sequence[int]) -> Tuple[int, int]:
    """Rows and columns of a variable as a matrix, its dimensions split nearest to a square."""
    splits = range(1, len(shape))
    cuts = [(int(np.prod(shape[:at])), int(np.prod(shape[at:]))) for at in splits]
    return min(cuts, key=sum) if cuts else (int(np.prod(shape, dtype=np.int64)), 1)


def numbers_of(rows: int, columns: int, rank: int) -> int:
    """How many numbers stand for a matrix."""
    return (rows + columns) * rank if rank else rows * columns


def checked(table: np.ndarray, values: np.ndarray, size: int) -> List[Entry]:
    """The rows of a table. Raises ValueError where it does not fit the values or the vector."""
    entries: List[Entry] = [tuple(row) for row in table.astype(np.int64).tolist()]
    end = needed = 0
    for start, rows, columns, rank in entries:
        if start < end or start + rows * columns > size or rank > min(rows, columns):
            raise ValueError("a message's matrices do not fit its vector")
        end = start + rows * columns
        needed += numbers_of(rows, columns, rank)
    if needed != values.size:
        raise ValueError("a message's matrices have %d numbers, not %d" % (needed, values.size))
    return entries


def decode(table: np.ndarray, values: np.ndarray, size: int) -> List[Tuple[slice, np.ndarray]]:
    """(place, float32 values) of each variable. Raises ValueError as ``checked``."""
    found, at = [], 0
    for start, rows, columns, rank in checked(table, values, size):
        part = values[at : at + numbers_of(rows, columns, rank)]
        at += part.size
        if rank:
            left, right = part[: rows * rank].reshape(rows, rank), part[rows * rank :].reshape(columns, rank)
            part = (left @ right.T).ravel()
        found.append((slice(start, start + rows * columns), part))
    return found
