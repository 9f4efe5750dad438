"""The dense compressor sends all of a gradient every time, as DLion's Baseline does."""

from typing import Optional

import numpy as np

from backends.strategies.compressors.base import Compressor
from backends.strategies.message import DENSE, Message, bytes_of, dense


class Uncompressed(Compressor):
    """Sends all values and keeps nothing."""

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """All values. The message shares the memory of ``values``: send it before they change."""
        return dense(values)

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """Exact."""
        return bytes_of(DENSE, self.size, self.size)
