"""Momentum correction applies momentum before compression (Lin et al., DGC, 2018)."""

from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from backends.strategies.compressors.base import Compressor
from backends.strategies.message import Message


class MomentumCorrection(Compressor):
    """v <- momentum v + u; a wrapped compressor selects the part of v to send.

    A server with momentum would turn sparse gradients into updates of every weight in every step,
    and would have to send all of them back. Here the server only sums. With nothing left out the
    result is the same, for velocities add up.
    """

    def __init__(self, of: Compressor, momentum: float) -> None:
        super().__init__(of.variables)
        self.of = of
        self.lossy = of.lossy
        self._momentum = momentum
        self._velocity = np.zeros(self.size, np.float32)

    def bind_weights(self, weights: np.ndarray) -> None:
        """Pass the weights to the wrapped compressor."""
        self.of.bind_weights(weights)

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """The part of the velocity that the wrapped compressor sends."""
        self._velocity *= self._momentum
        self._velocity += values
        return self.of.compress(self._velocity, budget_bytes)

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """The traffic of the wrapped compressor."""
        return self.of.traffic_bytes(budget_bytes)

    def residual(self) -> Optional[np.ndarray]:
        """The residual of the wrapped compressor."""
        return self.of.residual()

    def state(self) -> Tuple[np.ndarray, ...]:
        """The wrapped compressor's state, and a copy of the (size,) float32 velocity."""
        return self.of.state() + (self._velocity.copy(),)

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Go on from ``state``'s arrays. Raises ValueError where they are of another shape."""
        if not state or state[-1].shape != self._velocity.shape:
            raise ValueError("MomentumCorrection has (%d,) numbers after the arrays of what it wraps" % self.size)
        self.of.restore(state[:-1])
        self._velocity[:] = state[-1]

    def metrics(self) -> Dict[str, Any]:
        """The metrics of the wrapped compressor."""
        return self.of.metrics()
