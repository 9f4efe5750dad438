"""SparseLoCo sends the largest changes of a round at 2 bits, with error feedback that decays.

e <- decay e + d; the largest of each chunk of e are sent, rounded; e loses what was sent. What
stays in e takes the place of outer momentum (Sarfi et al., 2025).
"""

from typing import Optional, Sequence

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies import quantized
from backends.strategies.compressors.error_feedback import ErrorFeedback
from backends.strategies.message import QUANTIZED, Message, bytes_of


class SparseLoCo(ErrorFeedback):
    """Sends ``share`` of each chunk. With a decay of 1, what is not sent is kept whole.

    Raises ValueError unless 0 < share <= 0.5 and 0 <= decay <= 1.
    """

    sends_exactly = False

    def __init__(self, variables: Sequence[Variable], share: float = 0.0078, decay: float = 0.95) -> None:
        if not 0 < share <= 0.5:
            raise ValueError("sparse-loco needs a share above 0 and at most 0.5, not %s" % share)
        if not 0 <= decay <= 1:
            raise ValueError("sparse-loco needs a decay from 0 to 1, not %s" % decay)
        super().__init__(variables)
        self._share = share
        self._decay = decay

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        if self._decay != 1:
            self.accumulator *= np.float32(self._decay)
        arrays = quantized.encode(self.accumulate(values), self._share)
        indices, sent = quantized.decode(arrays, self.size)
        self.accumulator[indices] -= sent
        return Message(QUANTIZED, self.size, arrays)

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        counts = quantized.counts_of(self.size, self._share)
        total = int(counts.sum(dtype=np.int64))
        return bytes_of(QUANTIZED, self.size, *quantized.lengths(counts.size, total))
