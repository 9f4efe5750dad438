"""A schedule gives the learning rate of every step of a run."""

import math
from typing import NamedTuple

KINDS = ("constant", "cosine", "step")


class RateSchedule(NamedTuple):
    """The learning rate over ``steps`` updates, rising linearly over the first ``warmup``.

    constant: the rate stays.
    cosine: it falls to 0 along half a cosine.
    step: it is divided by 10 after one half and again after three quarters (He et al.).
    """

    kind: str = "constant"
    steps: int = 1
    warmup: int = 0

    def factor(self, step: int) -> float:
        """The factor on the base rate at update ``step``, counted from 0."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        share = min(1.0, step / max(1, self.steps))
        if self.kind == "cosine":
            return 0.5 * (1.0 + math.cos(math.pi * share))
        if self.kind == "step":
            return 1.0 if share < 0.5 else 0.1 if share < 0.75 else 0.01
        return 1.0
