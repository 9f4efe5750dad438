"""Momentum correction applies momentum before compression (Lin et al., DGC, 2018)."""

from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from backends.strategies.compressors.base import Compressor
from backends.strategies.message import Message


class MomentumCorrection(Compressor):
    """v <- momentum v + u, and another compressor's part of v goes out.

    A server whose velocity gets sparse gradients would change every weight in every step, and
    have to send all of them back. It is left with sums; with everything sent the result is the
    same, for velocities add up.
    """

    def __init__(self, of: Compressor, momentum: float) -> None:
        super().__init__(of.variables)
        self.of = of
        self.lossy = of.lossy
        self._momentum = momentum
        self._velocity = np.zeros(self.size, np.float32)

    def bind_weights(self, weights: np.ndarray) -> None:
        """Hand them on."""
        self.of.bind_weights(weights)

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """What the other sends of the velocity."""
        self._velocity *= self._momentum
        self._velocity += values
        return self.of.compress(self._velocity, budget_bytes)

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """That of the other."""
        return self.of.traffic_bytes(budget_bytes)

    def residual(self) -> Optional[np.ndarray]:
        """That of the other."""
        return self.of.residual()

    def state(self) -> Tuple[np.ndarray, ...]:
        """That of the other, and a copy of the (size,) float32 velocity."""
        return self.of.state() + (self._velocity.copy(),)

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Go on from ``state``'s arrays. Raises ValueError where they are of another shape."""
        if not state or state[-1].shape != self._velocity.shape:
            raise ValueError("MomentumCorrection has (%d,) numbers after the arrays of what it wraps" % self.size)
        self.of.restore(state[:-1])
        self._velocity[:] = state[-1]

    def metrics(self) -> Dict[str, Any]:
        """What the other tells."""
        return self.of.metrics()
