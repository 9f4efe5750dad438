"""The compressor interface selects what of a vector is sent, and what is kept for later."""

import abc
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from backends.frameworks.base import Variable
from backends.strategies.message import DENSE, Message, bytes_of


class Compressor(abc.ABC):
    """Selects the part of a vector to send to one peer (or to all), and keeps the rest for later.

    Unless it is ``lossy``, the sum of all values equals the sum of all messages plus the residual.
    """

    #: Whether values are lost, such as the last bits of a number.
    lossy = False
    #: Whether it adapts to a link's byte budget, so that each link needs its own compressor.
    by_link = False

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        self.size = sum(variable.size for variable in self.variables)
        self.weights: Optional[np.ndarray] = None

    def bind_weights(self, weights: np.ndarray) -> None:
        """Set the (size,) float32 weights that messages will change; some compressors need them.

        They are read at each ``compress`` and never written. One call is enough while the weights
        stay in that memory.
        """
        self.weights = weights

    @abc.abstractmethod
    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """The message to send now, from (size,) float32 values and the residual.

        The values are not changed.
        budget_bytes: capacity of the link until the next message; some compressors ignore it.
        """

    @abc.abstractmethod
    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """Mean bytes of a message, as far as they are known without running."""

    def answer_bytes(self, workers: int) -> float:
        """Bytes of weights that a parameter server sends back after messages of so many workers.

        These are all weights, unless messages leave whole layers unchanged.
        """
        return bytes_of(DENSE, self.size, self.size)

    def residual(self) -> Optional[np.ndarray]:
        """The (size,) float32 values not sent yet; None where none are ever kept."""
        return None

    def state(self) -> Tuple[np.ndarray, ...]:
        """The arrays that must be in a checkpoint; their shapes never change."""
        return ()

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Resume from ``state``'s arrays. Raises ValueError where they are of another shape."""
        if len(state):
            raise ValueError("%s keeps nothing, and has no use for %d arrays" % (type(self).__name__, len(state)))

    def metrics(self) -> Dict[str, Any]:
        """Figures for the run's result, such as a threshold or the CNC ratio."""
        return {}
