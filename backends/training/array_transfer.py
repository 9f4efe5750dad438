"""Arrays of any shape are sent as a JSON description, followed by their bytes."""

from typing import Any, Dict, List, Sequence

import numpy as np

from backends.frameworks.base import Arrays
from backends.network.framing import WireError
from backends.training.layout import Layout


def describe(arrays: Sequence[np.ndarray]) -> List[Any]:
    """The types and shapes of arrays as JSON values."""
    return [[array.dtype.str, list(array.shape)] for array in arrays]


def allocate(description: Any, most_bytes: int) -> Arrays:
    """Arrays to receive into.

    Raises WireError for a description of anything but numbers, or of more than ``most_bytes``.
    """
    try:
        kinds = [(np.dtype(kind), tuple(int(n) for n in shape)) for kind, shape in description]
        total = sum(kind.itemsize * int(np.prod(shape, dtype=np.float64)) for kind, shape in kinds)
        if total > most_bytes or any(kind.kind not in "iuf" or min(shape, default=0) < 0 for kind, shape in kinds):
            raise ValueError("it is not of numbers, or of more than %d bytes" % most_bytes)
        return tuple(np.empty(shape, kind) for kind, shape in kinds)
    except (TypeError, ValueError) as error:
        raise WireError("cannot receive arrays of %r: %s" % (description, error)) from error


def describe_named(state: Dict[str, Arrays]) -> List[Any]:
    """Names, and the types and shapes of the arrays of each, as JSON values."""
    return [[name, describe(arrays)] for name, arrays in state.items()]


def allocate_named(description: Any, most_bytes: int) -> Dict[str, Arrays]:
    """Arrays to receive into, by name; each name has ``most_bytes`` at most. Raises WireError."""
    try:
        pairs = [(str(name), arrays) for name, arrays in description]
    except (TypeError, ValueError) as error:
        raise WireError("cannot receive arrays of %r: %s" % (description, error)) from error
    return {name: allocate(arrays, most_bytes) for name, arrays in pairs}


def flatten(state: Dict[str, Arrays]) -> Arrays:
    """The arrays of all names, one after the other."""
    return tuple(array for arrays in state.values() for array in arrays)


def most_bytes(layout: Layout, members: int) -> int:
    """A bound on the bytes of the arrays that a member of a run has under one name."""
    return 64 * (layout.parameters + layout.state) * (members + 1) + (1 << 16)
