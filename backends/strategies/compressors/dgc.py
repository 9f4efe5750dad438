"""Deep gradient compression sends very few elements, after a warm-up with more (Lin et al., 2018).

It is top-k with the paper's momentum correction (``momentum_correction``), which the worker of a
server has, and momentum factor masking: the momentum of what is sent begins anew, for it would
carry on in a direction that is out of date. The paper's clipping is ``--clip-norm``.
"""

from typing import Optional, Sequence

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.compressors.top_k import TopK
from backends.strategies.message import Message

#: Share that is sent at the beginning of the warm-up (section 3.3).
FIRST_SHARE = 0.25


class DeepGradientCompression(TopK):
    """Sends the largest ``share``, to which a quarter falls over the first ``warmup`` messages.

    Raises ValueError unless 0 < share <= 1 and warmup >= 0.
    """

    counters = ("messages",)
    masks_momentum = True

    def __init__(self, variables: Sequence[Variable], share: float = 0.001, warmup: int = 0) -> None:
        super().__init__(variables, share)
        if warmup < 0:
            raise ValueError("dgc needs a warmup of at least 0 messages, not %d" % warmup)
        self._share = share
        self._warmup = warmup
        self.messages = 0

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        self.count = max(1, int(round(self._share_now() * self.size)))
        self.messages += 1
        return super().compress(values, budget_bytes)

    def _share_now(self) -> float:
        left = max(0.0, 1.0 - self.messages / float(self._warmup)) if self._warmup else 0.0
        wider: float = (FIRST_SHARE / self._share) ** left
        return self._share * max(1.0, wider)
