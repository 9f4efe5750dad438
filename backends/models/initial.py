"""Initial weights of a described model are the same in every framework."""

import numpy as np

from backends.models.layers import Model, Shape
from backends.models.shapes import size, trace


def initial_weights(model: Model, seed: int) -> np.ndarray:
    """Flat float32 (parameters,): scales one, biases zero, weights uniform within ±limit.

    limit: sqrt(6 / inputs) for kernels (He et al., Delving deep into rectifiers, 2015), sqrt(6 /
    (inputs + outputs)) for dense weights (Glorot and Bengio, 2010).
    numpy's RandomState promises the same numbers in all its versions, which its newer generators
    do not.
    """
    random = np.random.RandomState(seed)
    return np.concatenate([_start(random, name, shape) for name, shape in trace(model).variables])


def _start(random: np.random.RandomState, name: str, shape: Shape) -> np.ndarray:
    if len(shape) == 1:
        return np.full(shape, float(name.endswith(".weight")), np.float32)
    inputs, outputs = size(shape[1:]), shape[0] if len(shape) == 2 else 0
    limit = np.sqrt(6.0 / (inputs + outputs))
    return random.uniform(-limit, limit, size(shape)).astype(np.float32)
