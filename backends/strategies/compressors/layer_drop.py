"""Layer dropping sends whole layers, once their accumulated gradient is large (Lee et al., 2020).

A layer is one weight variable. Its representative value is the mean of its absolute values (section
4; Eq. 2 omits the absolute value). A server sends back only the layers that have changed.
"""

import math
from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.compressors.error_feedback import ErrorFeedback
from backends.strategies.compressors.magnitude import total
from backends.strategies.message import SPANS, Message, bytes_of

NORMS = ("mean", "l1")

#: Share of the dropped elements that are sent in a step after all, because enough has accumulated.
#: Measured: 0.19 to 0.27 for ResNet, MobileNet and SqueezeNet, which have many layers; 0.09 for
#: CIFAR10's network and 0.58 for Cipher, most of which is one layer (benchmarks/layer_drop.py).
RETURNING = 0.25


class LayerDrop(ErrorFeedback):
    """Sends the layers whose accumulated representative value reaches the threshold (section 4).

    The threshold is computed every ``every`` steps by Alg. 1, from the gradients of that step
    alone, to drop at most the share ``ratio`` of all elements. It is also computed after a tenth of
    the first ``every``, which the paper does not do: with momentum values grow up to tenfold at
    first, and nearly all would exceed the threshold of the first step.
    norm: the representative value of a layer: "mean", or "l1" as in the text of Alg. 1.
    Raises ValueError unless 0 <= ratio < 1 and every >= 1, and for another norm.
    """

    counters = ("steps", "threshold")

    def __init__(
        self, variables: Sequence[Variable], ratio: float = 0.95, every: int = 100, norm: str = "mean"
    ) -> None:
        if not 0 <= ratio < 1:
            raise ValueError("layer-drop needs a ratio from 0 to below 1, not %s" % ratio)
        if every < 1:
            raise ValueError("layer-drop needs a threshold every 1 step or more, not %s" % every)
        if norm not in NORMS:
            raise ValueError("layer-drop has no norm %r; known: %s" % (norm, ", ".join(NORMS)))
        super().__init__(variables)
        self.ratio = ratio
        self.every = every
        self.norm = norm
        self.steps = 0
        self.threshold = -1.0

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """A message with a span for each layer sent; the paper's marker is a missing span."""
        if self.steps % self.every == 0 or self.steps == self.every // 10:
            self.threshold = threshold(self._represented(values), [v.size for v in self.variables], self.ratio)
        self.steps += 1
        represented = self._represented(self.accumulate(values))
        return self.take_spans([v.span for v, value in zip(self.variables, represented) if value >= self.threshold])

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """An estimate for layers whose scales differ widely and do not depend on their sizes.

        The layer at which Alg. 1 stops is not dropped: half of its size, on average, is missing
        from ``ratio``. Of what was dropped the share RETURNING is sent later, where that is more.
        """
        return self._bytes(self._share())

    def answer_bytes(self, workers: int) -> float:
        """An estimate for workers that choose their layers independently.

        Measured with four workers it was 5 to 18 points too high, for the workers' layers overlap.
        """
        return self._bytes(1.0 - (1.0 - self._share()) ** workers)

    def _share(self) -> float:
        end = sum(v.size * v.size for v in self.variables) / (2.0 * self.size * self.size)
        return min(1.0, 1.0 - self.ratio + max(end, RETURNING * self.ratio))

    def _bytes(self, share: float) -> float:
        return bytes_of(SPANS, self.size, math.ceil(share * len(self.variables)), int(share * self.size))

    def metrics(self) -> Dict[str, Any]:
        return {"threshold": self.threshold}

    def _represented(self, values: np.ndarray) -> List[float]:
        sums = [total(values[v.part]) for v in self.variables]
        return sums if self.norm == "l1" else [value / v.size for value, v in zip(sums, self.variables)]


def threshold(represented: Sequence[float], sizes: Sequence[int], ratio: float) -> float:
    """Alg. 1: the value of the layer at which the summed sizes exceed ``ratio`` of all elements.

    Layers are summed in ascending order of value. The paper sorts in reverse, but dropping the
    small ones needs ascending order.
    Returns -1, which drops nothing, where the sizes never exceed it.
    """
    dropped = 0
    for layer in np.argsort(represented, kind="mergesort"):
        dropped += sizes[layer]
        if dropped > ratio * sum(sizes):
            return float(represented[layer])
    return -1.0
