"""Gaia sends updates that exceed a given share of their weight (Hsieh et al., NSDI 2017)."""

import math
from typing import Optional, Sequence

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.compressors.error_feedback import ErrorFeedback
from backends.strategies.compressors.magnitude import blocks
from backends.strategies.message import SPARSE, Message, bytes_of

#: Share of the entries that counts as significant before a run. It depends on the learning rate,
#: the model and the progress of training: 6 to 9 % for a small network in 40 s of training with
#: momentum, at rates of 0.01 and 0.03 (benchmarks/log/results.md, the race).
SHARE = 0.07


class Gaia(ErrorFeedback):
    """Sends the entries with |u| > s |w|, where u is the accumulated update.

    u must be scaled as it will be subtracted from the weights w, which ``bind_weights`` sets. Any
    change of a weight of zero is significant. s is a hundredth as in DLion, section 5.1.4.
    falling: whether s is divided by the square root of the step number, as in Gaia, not in DLion.
    Raises ValueError unless 0 < s < 1.
    """

    counters = ("steps",)

    def __init__(self, variables: Sequence[Variable], s: float = 0.01, falling: bool = False) -> None:
        if not 0 < s < 1:
            raise ValueError("gaia needs an s between 0 and 1, not %s" % s)
        super().__init__(variables)
        self.s = s
        self.falling = falling
        self.steps = 0

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        assert self.weights is not None, "gaia needs the weights (bind_weights) before it compresses"
        self.steps += 1
        s = np.float32(self.s / math.sqrt(self.steps) if self.falling else self.s)
        found = [
            np.flatnonzero(np.abs(change) > np.multiply(weight, s, out=weight)) + start
            for (start, change), (_, weight) in zip(self.accumulate_blocks(values), blocks(self.weights))
        ]
        return self.take(np.concatenate(found))

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        entries = int(SHARE * self.size)
        return bytes_of(SPARSE, self.size, entries, entries)
