"""Top-k sends the largest elements of the whole vector and accumulates the others.

Stich et al., Sparsified SGD with Memory (2018), and the compressor of ScaDLES (Tyagi and Swany).
"""

from typing import Optional, Sequence

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.compressors.error_feedback import ErrorFeedback
from backends.strategies.compressors.magnitude import largest
from backends.strategies.message import DENSE, SPARSE, Message, bytes_of


class TopK(ErrorFeedback):
    """Sends the ``share`` of all elements largest in magnitude; everything from a half on.

    Raises ValueError unless 0 < share <= 1.
    """

    def __init__(self, variables: Sequence[Variable], share: float = 0.01) -> None:
        if not 0 < share <= 1:
            raise ValueError("top-k needs a share above 0 and at most 1, not %s" % share)
        super().__init__(variables)
        self.count = max(1, int(round(share * self.size)))

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """The k largest of the accumulator; ties are resolved arbitrarily."""
        gathered = self.accumulate(values)
        if 2 * self.count >= self.size:
            return self.take_all()
        return self.take(largest(gathered, self.count))

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        if 2 * self.count >= self.size:
            return bytes_of(DENSE, self.size, self.size)
        return bytes_of(SPARSE, self.size, self.count, self.count)
