"""EF21 sends the change of a gradient since what its receiver has of it (Fatkhullin et al., 2023).

c = C(v - g); g <- g + c. Worker and server keep the same g, and the server steps along the mean of
the workers' g. That converges however much the workers' data differ. With the momentum that a
worker applies before compression, v <- momentum v + u, this is EF21-SGDM (algorithm 1), whose v is
1 - momentum times as large: C and g scale with it, and the learning rate is that of SGD. The server
applies the rate, for g would keep former ones.
"""

from typing import Optional, Sequence, Tuple

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.compressors.top_k import TopK
from backends.strategies.message import Message, add


class EF21(TopK):
    """Sends the ``share`` of all elements in which v is furthest from g; everything from a half on.

    Raises ValueError unless 0 < share <= 1.
    """

    sends_exactly = False
    sends_differences = True

    def __init__(self, variables: Sequence[Variable], share: float = 0.01) -> None:
        super().__init__(variables, share)
        self._estimate = np.zeros(self.size, np.float32)

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        np.negative(self._estimate, out=self.accumulator)
        message = super().compress(values, budget_bytes)
        add(message, self._estimate)
        return message

    def state(self) -> Tuple[np.ndarray, ...]:
        return (self._estimate.copy(),)

    def restore(self, state: Sequence[np.ndarray]) -> None:
        if [array.shape for array in state] != [(self.size,)]:
            raise ValueError("EF21 keeps one array of %d numbers" % self.size)
        self._estimate[:] = state[0]
