"""The Keras optimizer that a job brings, and what it keeps as bytes."""

import io
from typing import Any, Callable, List, Optional, Sequence

import numpy as np
import tensorflow as tf

from backends.data.archives import open_npz
from backends.frameworks.base import NO_OPTIMIZER
from backends.jobs.failure import refusal
from backends.jobs.user_job import type_in_words


class KerasOptimizer:
    """A Keras optimizer of the job's. Raises JobFailure for another, ValueError for none.

    variables: as the model has them, Keras's own in Keras 3.
    """

    def __init__(self, make: Optional[Callable[[Any], Any]], variables: Sequence[Any]) -> None:
        if make is None:
            raise ValueError(NO_OPTIMIZER)
        self._variables = list(variables)
        self._optimizer: Any = make(self._variables)
        if not hasattr(self._optimizer, "apply_gradients"):
            raise refusal("its optimizer returns %s; it must return a Keras optimizer" % type_in_words(self._optimizer))
        if hasattr(self._optimizer, "build"):
            self._optimizer.build(self._variables)
        self._apply = tf.function(self._trace, autograph=False)

    def step(self, gradients: List[tf.Tensor]) -> None:
        """One step; gradients in the shapes of the variables."""
        self._apply(gradients)

    def _trace(self, gradients: List[tf.Tensor]) -> None:
        self._optimizer.apply_gradients(zip(gradients, self._variables))

    def state(self) -> np.ndarray:
        """What it keeps, (n,) uint8."""
        stream = io.BytesIO()
        np.savez(stream, *self._arrays())
        return np.frombuffer(stream.getvalue(), np.uint8)

    def set_state(self, state: np.ndarray) -> None:
        """Go on from what it kept. Raises ValueError where that is of another optimizer."""
        with open_npz(io.BytesIO(state.tobytes())) as saved:
            arrays = [saved["arr_%d" % place] for place in range(len(saved.files))]
        if hasattr(self._optimizer, "set_weights"):
            self._optimizer.set_weights(arrays)
            return
        kept = self._optimizer.variables
        if [tuple(each.shape) for each in kept] != [each.shape for each in arrays]:
            raise ValueError("the checkpoint is of another optimizer than the job has now")
        for variable, values in zip(kept, arrays):
            variable.assign(values)

    def _arrays(self) -> List[np.ndarray]:
        if hasattr(self._optimizer, "get_weights"):
            return list(self._optimizer.get_weights())
        return [np.asarray(each) for each in self._optimizer.variables]
