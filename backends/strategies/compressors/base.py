"""The compressor interface selects what of a vector is sent, and what is kept for later."""

import abc
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from backends.frameworks.layout import Variable
from backends.strategies.message import DENSE, Message, bytes_of


class Compressor(abc.ABC):
    """Selects the part of a vector to send to one peer (or to all), and keeps the rest for later.

    Unless it is ``lossy``, the sum of all values equals the sum of all messages plus the residual.
    Where it ``sends_differences``, the last values do.
    """

    #: Whether values are lost, such as the last bits of a number.
    lossy = False
    #: Whether it adapts to a link's byte budget, so that each link needs its own compressor.
    by_link = False
    #: Whether the momentum of what was sent begins anew (``momentum_correction``).
    masks_momentum = False
    #: Whether a message is the change since the last one, so that a receiver must keep their sum.
    sends_differences = False

    def __init__(self, variables: Sequence[Variable]) -> None:
        self.variables = tuple(variables)
        self.size = sum(variable.size for variable in self.variables)
        self.weights: Optional[np.ndarray] = None

    def bind_weights(self, weights: np.ndarray) -> None:
        """Set the (size,) float32 weights that messages will change; some compressors need them.

        They are read at each ``compress`` and never written. One call is enough for one memory.
        """
        self.weights = weights

    @abc.abstractmethod
    def compress(self, values: np.ndarray, budget_bytes: Optional[float] = None) -> Message:
        """The message to send now, from (size,) float32 values, left as they are, and the residual.

        budget_bytes: capacity of the link until the next message; some compressors ignore it.
        """

    @abc.abstractmethod
    def traffic_bytes(self, budget_bytes: Optional[float] = None) -> float:
        """Mean bytes of a message, as far as they are known without running."""

    def answer_bytes(self, workers: int) -> float:
        """Bytes of weights that a server sends back to messages of so many workers: all."""
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


class Wrapper(Compressor):
    """Changes what another compressor, ``of``, is given or sends.

    own: the array of its own that a checkpoint must hold.
    """

    def __init__(self, of: Compressor, own: np.ndarray) -> None:
        super().__init__(of.variables)
        self.of, self.own = of, own
        self.lossy, self.by_link, self.masks_momentum = of.lossy, of.by_link, of.masks_momentum

    def bind_weights(self, weights: np.ndarray) -> None:
        self.of.bind_weights(weights)

    def residual(self) -> Optional[np.ndarray]:
        return self.of.residual()

    def state(self) -> Tuple[np.ndarray, ...]:
        return self.of.state() + (self.own.copy(),)

    def restore(self, state: Sequence[np.ndarray]) -> None:
        if not state or state[-1].shape != self.own.shape:
            kind, shape = type(self).__name__, self.own.shape
            raise ValueError("%s has %s numbers after the arrays of what it wraps" % (kind, shape))
        self.of.restore(state[:-1])
        self.own[:] = state[-1]

    def metrics(self) -> Dict[str, Any]:
        return self.of.metrics()
