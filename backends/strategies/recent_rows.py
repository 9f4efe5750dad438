"""A ring buffer holds the last rows of numbers that were added."""

from typing import Sequence, Tuple, Union

import numpy as np


class RecentRows:
    """The last ``window`` rows, in any order; each is a number or, with ``columns``, several."""

    def __init__(self, window: int, *columns: int) -> None:
        self._rows = np.zeros((window, *columns))
        self._count = 0

    def add(self, row: Union[float, Tuple[float, ...]]) -> None:
        self._rows[self._count % len(self._rows)] = row
        self._count += 1

    @property
    def rows(self) -> np.ndarray:
        """The rows so far, (at most window, columns) float64."""
        return self._rows[: self._count]

    def state(self) -> Tuple[np.ndarray, ...]:
        """For a checkpoint: (window, columns) float64 of rows, and their (1,) int64 count."""
        return self._rows.copy(), np.array([self._count], np.int64)

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Go on from ``state``. Raises ValueError for another shape."""
        if len(state) != 2 or state[0].shape != self._rows.shape or state[1].shape != (1,):
            raise ValueError("not the state of %s of the last %d" % (type(self).__name__, len(self._rows)))
        self._rows[:] = state[0]
        self._count = int(state[1][0])
