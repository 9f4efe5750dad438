"""Buffers copy arrays between TensorFlow variables and a flat host buffer.

On a CPU most copies can be avoided. Gradients: numpy reads an eager tensor without copying it, so
that each is copied once, to its place; joined in the graph, they would go through memory that the
system has to clear in every step. Weights: a variable that is assigned aligned numpy memory by the
raw operation goes on to use it. ``Variable.assign`` would copy all.
"""

from typing import Iterator, List, Sequence, Tuple

import numpy as np
import tensorflow as tf

from backends.frameworks.layout import Variable, consecutive

#: Alignment in bytes that TensorFlow is built with (EIGEN_MAX_ALIGN_BYTES).
ALIGNMENT = 64

Named = List[Tuple[str, tf.Variable]]


def aligned(size: int) -> np.ndarray:
    """Zeros, (size,) float32, in memory that TensorFlow can use without copying."""
    spare = np.zeros(size + ALIGNMENT // 4, np.float32)
    start = -spare.ctypes.data % ALIGNMENT // 4
    return spare[start : start + size]


def places(named: Named) -> Tuple[Variable, ...]:
    return consecutive((name, variable.shape.as_list()) for name, variable in named)


def end(where: Sequence[Variable]) -> int:
    """Number of elements of the flat buffer."""
    return sum(at.size for at in where)


def host(tensor: tf.Tensor) -> np.ndarray:
    """The memory of an eager tensor: itself on a CPU, a copy from a GPU."""
    memory: np.ndarray = tensor.__array__()
    return memory


class PerVariableCopies:
    """Copies array by array, for tensors in host memory."""

    def __init__(self, variables: Sequence[tf.Variable], where: Sequence[Variable]) -> None:
        self._variables, self._where = variables, where

    def pack(self, tensors: Sequence[tf.Tensor]) -> List[tf.Tensor]:
        """The tensors that a graph returns, for ``fetch``; one tensor for each variable."""
        return [tf.convert_to_tensor(tensor) for tensor in tensors]

    def unpack(self, packed: Sequence[tf.Tensor]) -> List[tf.Tensor]:
        """Packed tensors in the shapes of the variables, inside a graph."""
        return [tf.cast(tensor, variable.dtype) for tensor, variable in zip(packed, self._variables)]

    def fetch(self, packed: Sequence[tf.Tensor], flat: np.ndarray) -> None:
        """Copy packed tensors into the flat host buffer, (elements,) float32."""
        for tensor, view in zip(packed, self._views(flat)):
            np.copyto(view, host(tensor), casting="same_kind")

    def load(self, flat: np.ndarray) -> None:
        """Copy the flat host buffer into the variables, which may go on to use its memory."""
        for variable, view in zip(self._variables, self._views(flat)):
            values = np.asarray(view, variable.dtype.as_numpy_dtype)
            tf.raw_ops.AssignVariableOp(resource=variable.handle, value=values)

    def _views(self, flat: np.ndarray) -> Iterator[np.ndarray]:
        return (flat[at.part].reshape(at.shape) for at in self._where)


class ConcatenatedCopies:
    """Copies all arrays as one, so that a GPU makes one transfer instead of hundreds."""

    def __init__(self, variables: Sequence[tf.Variable], where: Sequence[Variable]) -> None:
        self._variables, self._where = variables, where
        self._assign = tf.function(self._trace, autograph=False)

    def pack(self, tensors: Sequence[tf.Tensor]) -> List[tf.Tensor]:
        flat = [tf.reshape(tf.cast(tensor, tf.float32), (-1,)) for tensor in tensors]
        return [tf.concat(flat, 0) if flat else tf.zeros(0)]

    def unpack(self, packed: Sequence[tf.Tensor]) -> List[tf.Tensor]:
        pieces = tf.split(packed[0], [at.size for at in self._where])
        return [
            tf.cast(tf.reshape(piece, at.shape), variable.dtype)
            for piece, at, variable in zip(pieces, self._where, self._variables)
        ]

    def fetch(self, packed: Sequence[tf.Tensor], flat: np.ndarray) -> None:
        np.copyto(flat, host(packed[0]))

    def load(self, flat: np.ndarray) -> None:
        if self._variables:
            self._assign(tf.raw_ops.Identity(input=flat))  # unlike tf.constant, it does not copy on the host

    def _trace(self, flat: tf.Tensor) -> None:
        for variable, value in zip(self._variables, self.unpack([flat])):
            variable.assign(value)
