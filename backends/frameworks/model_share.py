"""One member's share of a model, whose whole is nowhere in memory."""

import abc
from typing import Optional

import numpy as np

from backends.frameworks.base import Replica


class ModelShare(Replica):
    """A replica whose weights, gradients and slots are divided among the members of a group.

    It begins whole; ``ProcessGroup.average_gradients`` divides it. All members then call the same
    methods in the same order. Whole arrays are on the first member alone, in files; other members
    get and give arrays without an element, also of slots. Members evaluate together, each its own
    batch. Its optimizers treat each element by itself; a job's own one is none of them.
    state: (buffers,), which each member has; ``state_variables`` begin with the frozen parameters,
        which are divided, too.
    folder: of the files; None for that of temporary files.
    """

    folder: Optional[str] = None

    @abc.abstractmethod
    def whole_weights(self) -> np.ndarray:
        """(parameters,) float32."""

    @abc.abstractmethod
    def whole_state(self) -> np.ndarray:
        """(state,) float32, with the first member's buffers."""

    @abc.abstractmethod
    def set_whole(self, weights: np.ndarray, state: np.ndarray) -> None:
        """Take the first member's weights, (parameters,), and state, (state,)."""
