"""Max N sends the entries of each variable that are close to its largest (DLion, section 3.3)."""

import math
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.compressors.error_feedback import ErrorFeedback
from backends.strategies.compressors.magnitude import SAMPLE, above, few_exceed, greatest, likely
from backends.strategies.message import DENSE, SPARSE, Message, bytes_of

#: The smallest N, for a narrow link, and the greatest, which sends all (section 5.1.4).
LEAST, MOST = 0.85, 100.0
_ENTRY_BYTES = 8  # an index and a value
#: Entries of a sample from which it represents all entries; and the share of the budget that must
#: be used.
MANY, NEARLY = 600, 0.85


class MaxN(ErrorFeedback):
    """Sends the entries with |g| >= (1 - N / 100) max |g|, g being a variable's accumulator.

    Without a byte budget N is ``n``. With one N is the greatest from 0.85 to 100 whose message
    fits. For large messages N is estimated from a sample: on a slow device sorting all entries
    takes longer than sending the difference.
    Raises ValueError unless 0.85 <= n <= 100.
    """

    by_link = True

    def __init__(self, variables: Sequence[Variable], n: float = 10.0) -> None:
        if not LEAST <= n <= MOST:
            raise ValueError("max-n needs an n from %s to %s, not %s" % (LEAST, MOST, n))
        super().__init__(variables)
        self.n = n
        self._last_n = n

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """See Compressor. Exceeds budget_bytes only where N is 0.85 already."""
        gathered = self.accumulate(values)
        most = [greatest(gathered[variable.part]) for variable in self.variables]
        if budget_bytes is None:
            floor, chosen = _floor(self.n), self._near(gathered, most, _floor(self.n))
        elif budget_bytes >= bytes_of(DENSE, self.size, self.size):
            floor, chosen = _floor(MOST), np.arange(self.size)
        else:
            floor, chosen = self._fitting(gathered, most, budget_bytes)
        self._last_n = 100.0 * (1.0 - floor)
        return self.take(chosen)

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """The budget, or the bytes for Gaussian gradients without one (see ``_share``)."""
        everything = bytes_of(DENSE, self.size, self.size)
        if budget_bytes is not None:
            return min(max(budget_bytes, self._bytes(1)), everything)
        entries = sum(variable.size * _share(self.n / 100.0, variable.size) for variable in self.variables)
        return min(self._bytes(int(entries)), everything)

    def metrics(self) -> Dict[str, Any]:
        return {"n": self._last_n}

    def _near(self, gathered: np.ndarray, most: Sequence[float], floor: float) -> np.ndarray:
        """Ascending indices of entries with |g| >= floor max |g|; most: max |g| by variable."""
        if floor == 0.0:
            return np.arange(self.size)
        # In a variable of zeros, no entry is near its largest.
        floors = [np.float32(floor) * np.float32(peak) if peak > 0 else np.inf for peak in most]
        return np.concatenate([above(gathered[v.part], limit) + v.start for v, limit in zip(self.variables, floors)])

    def _fitting(self, gathered: np.ndarray, most: Sequence[float], budget_bytes: float) -> Tuple[float, np.ndarray]:
        """The lowest floor, at most that of 0.85, at which a message fits, and the indices."""
        entries = max(0, int((budget_bytes - self._bytes(self.size)) // _ENTRY_BYTES) + self.size)
        step = self.size // SAMPLE
        if step > 1 and entries >= MANY * step:
            floor = min(few_exceed(self._sample(gathered, most, step), entries / step), _floor(LEAST))
            found = self._near(gathered, most, floor) if floor else np.flatnonzero(gathered)
            if found.size <= entries and (not floor or found.size >= NEARLY * entries):
                return floor, found
        found, near = self._candidates(gathered, most, entries + 1)
        beyond = np.partition(near, near.size - entries - 1)[near.size - entries - 1]  # the first that does not fit
        floor = min(float(np.nextafter(beyond, np.float32(2))), _floor(LEAST))
        return floor, found[near >= floor]

    def _candidates(self, gathered: np.ndarray, most: Sequence[float], count: int) -> Tuple[np.ndarray, np.ndarray]:
        """Indices and nearness of ``count`` entries or more; all others are less near."""
        step = self.size // SAMPLE
        if step > 1:
            estimate = min(likely(self._sample(gathered, most, step), count / step), _floor(LEAST))
            found = self._near(gathered, most, estimate) if estimate else np.empty(0, np.int64)
            if found.size >= count:
                return found, self._nearness(gathered, most, found)
        everything = np.arange(self.size)
        return everything, self._nearness(gathered, most, everything)

    def _sample(self, gathered: np.ndarray, most: Sequence[float], step: int) -> np.ndarray:
        """Nearness of every ``step``-th entry of each variable."""
        parts = [np.abs(gathered[variable.part][::step]) for variable in self.variables]
        return np.concatenate([part / np.float32(peak or 1.0) for part, peak in zip(parts, most)])

    def _nearness(self, gathered: np.ndarray, most: Sequence[float], indices: np.ndarray) -> np.ndarray:
        """|g| / max |g| of ascending indices, float32; 0 in a variable of zeros."""
        borders = np.searchsorted(indices, [variable.start for variable in self.variables] + [self.size])
        peaks = np.repeat(np.array([peak or 1.0 for peak in most], np.float32), np.diff(borders))
        nearness: np.ndarray = np.abs(gathered[indices]) / peaks
        return nearness

    def _bytes(self, entries: int) -> int:
        return bytes_of(SPARSE, self.size, entries, entries)


def _floor(n: float) -> float:
    return 1.0 - n / 100.0


def _share(width: float, size: int) -> float:
    """The share of a variable's ``size`` entries that is sent in a step of Gaussian gradients.

    width: N / 100.

    An entry is a random walk of unit steps that is sent when it reaches a level L. By Wald's
    identity that takes L^2 + 1.165 L + 1 steps on average (Siegmund, 1979: it overshoots by 0.583).
    The largest overshoot c determines the level: L = (1 - width) (L + c). It is the maximum of size
    * share overshoots, whose tail is nearly exp(-c^2). At least that entry is sent.
    The equations are solved by iteration.
    """
    share = width
    for _ in range(30):
        level = (1.0 / width - 1.0) * math.sqrt(math.log1p(share * size))
        share = math.sqrt(share / (1.0 + 1.165 * level + level * level))
    return max(share, 1.0 / size)
