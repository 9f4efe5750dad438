"""A compressor chooses what of a gradient is sent: this is its interface."""

import abc
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from backends.frameworks.base import Variable
from backends.strategies.message import DENSE, Message, bytes_of


class Compressor(abc.ABC):
    """Chooses what of a vector goes to one peer (or to all alike), and keeps the rest for later.

    Unless it is ``lossy``, the sum of all values equals the sum of all messages plus the residual.
    """

    #: Whether something is thrown away for good, such as the last bits of a number.
    lossy = False
    #: Whether it adapts to a link's byte budget, so that each link needs one of its own.
    by_link = False

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        self.size = sum(variable.size for variable in self.variables)
        self.weights: Optional[np.ndarray] = None

    def bind_weights(self, weights: np.ndarray) -> None:
        """Give it the (size,) float32 weights that messages will change; some kinds judge by them.

        They are read at each ``compress`` and never written.
        Once is enough where the weights stay in that memory.
        """
        self.weights = weights

    @abc.abstractmethod
    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """The message to send now, of (size,) float32 values and the residual; values stay as
        they are.

        budget_bytes: what the link can take until the next message; some kinds ignore it.
        """

    @abc.abstractmethod
    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """Bytes of a message on average, as far as they are known without running."""

    def answer_bytes(self, workers: int) -> float:
        """Bytes of weights that a parameter server sends back after messages of so many workers.

        All weights, unless messages leave whole layers as they were.
        """
        return bytes_of(DENSE, self.size, self.size)

    def residual(self) -> Optional[np.ndarray]:
        """(size,) float32 that was given and not sent; None where nothing is ever kept."""
        return None

    def state(self) -> Tuple[np.ndarray, ...]:
        """The arrays that must be in a checkpoint; their shapes never change."""
        return ()

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Go on from ``state``'s arrays. Raises ValueError where they are of another shape."""
        if len(state):
            raise ValueError("%s keeps nothing, and has no use for %d arrays" % (type(self).__name__, len(state)))

    def metrics(self) -> Dict[str, Any]:
        """Figures for the run's result, such as a threshold or the CNC ratio."""
        return {}
