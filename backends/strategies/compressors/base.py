"""What is sent of a gradient: the interface. ``registry`` has every kind by name."""

import abc
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from backends.frameworks.base import Variable
from backends.strategies.message import DENSE, Message, bytes_of


class Compressor(abc.ABC):
    """Chooses what of a vector goes to one peer (or to all alike), and keeps the rest for later.

    Unless ``lossy``, the sum of all that was given equals the sum of all that was sent plus what is ``kept``.
    """

    #: Whether something is thrown away for good, such as the last bits of a number.
    lossy = False
    #: Whether it adapts to a link's byte budget, so that each link needs one of its own.
    by_link = False

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        self.size = sum(variable.size for variable in self.variables)
        self.weights: Optional[np.ndarray] = None

    def look(self, weights: np.ndarray) -> None:
        """See the (size,) float32 weights that what is sent will change; some kinds judge it by them.

        They are read at each ``send`` and never written: once is enough where they stay in that memory.
        """
        self.weights = weights

    @abc.abstractmethod
    def send(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """What of (size,) float32, and of what was kept before, goes out now. ``values`` is left as it is.

        budget_bytes: what the link can take until the next message; kinds that cannot adapt to it ignore it.
        """

    @abc.abstractmethod
    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """Bytes of a message on average, as far as that is known without running."""

    def answer_bytes(self, workers: int) -> float:
        """Bytes of what a parameter server sends back of the weights that the messages of so many workers change: all
        of them, unless they leave whole layers as they were."""
        return bytes_of(DENSE, self.size, self.size)

    def kept(self) -> Optional[np.ndarray]:
        """(size,) float32 that was given and not sent; None where nothing is ever kept."""
        return

    def state(self) -> Tuple[np.ndarray, ...]:
        """All that must be in a checkpoint: arrays. Its shapes never change."""
        return ()

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Go on from ``state``'s arrays. Raises ValueError where they are of another shape."""
        if len(state):
            raise ValueError("%s keeps nothing, and has no use for %d arrays" % (type(self).__name__, len(state)))

    def told(self) -> Dict[str, Any]:
        """Figures for people: such as the share that was sent, or the CNC ratio."""
        return {}
