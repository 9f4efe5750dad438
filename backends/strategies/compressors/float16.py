"""The float16 compressor sends all of a gradient in half of its bytes."""

from typing import Optional

import numpy as np

from backends.strategies.compressors.base import Compressor
from backends.strategies.message import HALF, Message, bytes_of, half


class Float16(Compressor):
    """Sends all values as float16 (11 significant bits); the rounding error is lost."""

    lossy = True

    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """All values, rounded."""
        return half(values)

    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """Exact."""
        return bytes_of(HALF, self.size, self.size)
