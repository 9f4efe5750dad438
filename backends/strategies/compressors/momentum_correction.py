"""Momentum correction applies momentum before compression (Lin et al., DGC, 2018)."""

from typing import Optional

import numpy as np

from backends.strategies.compressors.base import Compressor, Wrapper
from backends.strategies.message import Message, clear


class MomentumCorrection(Wrapper):
    """v <- momentum v + u; a wrapped compressor selects the part of v to send.

    A server with momentum would turn sparse gradients into updates of every weight in every step,
    and would have to send all of them back. Here the server only sums. With nothing left out the
    result is the same, for velocities add up.
    """

    def __init__(self, of: Compressor, momentum: float) -> None:
        super().__init__(of, np.zeros(of.size, np.float32))
        self._momentum = momentum

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        velocity = self.own
        velocity *= self._momentum
        velocity += values
        message = self.of.compress(velocity, budget_bytes)
        if self.of.masks_momentum:
            clear(message, velocity)
        return message

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        return self.of.traffic_bytes(budget_bytes)
