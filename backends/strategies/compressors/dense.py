"""Dense and float16 compressors send all of a gradient every time, as DLion's Baseline does."""

from typing import Optional

import numpy as np

from backends.strategies.compressors.base import Compressor
from backends.strategies.message import DENSE, HALF, Message, bytes_of, dense, half


class Uncompressed(Compressor):
    """Sends all values and keeps nothing."""

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """All values. The message shares the memory of ``values``: send it before they change."""
        return dense(values)

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        return bytes_of(DENSE, self.size, self.size)


class Float16(Compressor):
    """Sends all values as float16 (11 significant bits); the rounding error is lost."""

    lossy = True

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        return half(values)

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        return bytes_of(HALF, self.size, self.size)
