"""DLion's Max N (Hong and Chandra, section 3.3): of each weight variable the entries that are near its largest one."""

import math
from typing import Any, Dict, Optional, Sequence

import numpy as np

from backends.base import Variable
from backends.strategies.message import DENSE, SPARSE, Message, bytes_of
from backends.strategies.residual import Residual
from backends.strategies.topk import largest

#: The least N that a narrow link can enforce, and the greatest, which sends everything (section 5.1.4).
LEAST, MOST = 0.85, 100.0
_ENTRY_BYTES = 8  # an index and a value


class MaxN(Residual):
    """Sends the entries with |g| >= (1 - N / 100) max |g|, g being what has gathered of their variable.

    With a byte budget N is the greatest from 0.85 to 100 whose message fits: the transmission speed assurance module,
    for which a sender serves a single link. Without one it is ``n``. Raises ValueError unless 0.85 <= n <= 100.
    """

    by_link = True

    def __init__(self, variables, n=10.0):
        # type: (Sequence[Variable], float) -> None
        if not LEAST <= n <= MOST:
            raise ValueError("max-n needs an n from %s to %s, not %s" % (LEAST, MOST, n))
        super().__init__(variables)
        self.n = n
        self._last_n = n

    def send(self, values, budget_bytes=None):
        # type: (np.ndarray, Optional[float]) -> Message
        """Over budget_bytes only where N is 0.85 already."""
        near = self._nearness(self.gather(values))
        floor = _floor(self.n) if budget_bytes is None else self._fitting(near, budget_bytes)
        self._last_n = 100.0 * (1.0 - floor)
        return self.take(np.flatnonzero(near >= floor))

    def traffic_bytes(self, budget_bytes=None):
        # type: (Optional[float]) -> float
        """The budget, where that is less than everything; else as for Gaussian gradients (see ``_share``)."""
        everything = bytes_of(DENSE, self.size, self.size)
        if budget_bytes is not None:
            return min(max(budget_bytes, self._bytes(1)), everything)
        entries = sum(variable.size * _share(self.n / 100.0, variable.size) for variable in self.variables)
        return min(self._bytes(int(entries)), everything)

    def told(self):
        # type: () -> Dict[str, Any]
        """n: that of the last message."""
        return {"n": self._last_n}

    def _nearness(self, gathered):
        # type: (np.ndarray) -> np.ndarray
        """(size,) float32: |g| / max |g| of each variable; zeros where it has nothing else."""
        near = np.abs(gathered)
        for variable in self.variables:
            part = near[variable.start : variable.start + variable.size]
            most = part.max()
            if most > 0:
                part /= most
        return near

    def _fitting(self, near, budget_bytes):
        # type: (np.ndarray, float) -> float
        """The lowest floor of nearness from which on a message fits, as far as N may fall."""
        if budget_bytes >= bytes_of(DENSE, self.size, self.size):
            return _floor(MOST)
        entries = max(0, int((budget_bytes - self._bytes(self.size)) // _ENTRY_BYTES) + self.size)
        beyond = near[largest(near, entries + 1)].min()  # the first that has no room any more
        return min(float(np.nextafter(beyond, np.float32(2))), _floor(LEAST))

    def _bytes(self, entries):
        # type: (int) -> int
        return bytes_of(SPARSE, self.size, entries, entries)


def _floor(n):
    # type: (float) -> float
    return 1.0 - n / 100.0


def _share(width, size):
    # type: (float, int) -> float
    """The share of a variable's ``size`` entries that goes in a step of Gaussian gradients; width: N / 100.

    An entry is a random walk of unit steps that goes out when it gets to a level L. By Wald's identity that takes
    L^2 + 1.165 L + 1 steps on average (Siegmund, 1979: it overshoots by 0.583). The one that overshoots most, by c,
    sets the level: L = (1 - width) (L + c). It is the greatest of size * share overshoots, whose tail is nearly
    exp(-c^2). At least that one goes. The equations are solved by iteration.
    """
    share = width
    for _ in range(30):
        level = (1.0 / width - 1.0) * math.sqrt(math.log1p(share * size))
        share = math.sqrt(share / (1.0 + 1.165 * level + level * level))
    return max(share, 1.0 / size)
