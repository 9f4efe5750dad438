"""Arrays of any shape are sent as their types and shapes, followed by their bytes."""

from typing import Any, Dict, Mapping, Sequence, Tuple

import numpy as np

from backends.frameworks.base import Arrays
from backends.frameworks.layout import Layout, elements
from backends.network.framing import Connection, WireError, as_bytes
from backends.protocol.frames import ArraySpec, NamedArrays


def describe(arrays: Sequence[np.ndarray]) -> Tuple[ArraySpec, ...]:
    """The types and shapes of arrays."""
    return tuple(ArraySpec(array.dtype.str, array.shape) for array in arrays)


def allocate(specs: Sequence[ArraySpec], most_bytes: int) -> Arrays:
    """Arrays to receive into.

    Raises WireError for anything but numbers, and for more than ``most_bytes``.
    """
    try:
        kinds = [(np.dtype(spec.dtype), spec.shape) for spec in specs]
        total = sum(kind.itemsize * elements(shape) for kind, shape in kinds)
        if total > most_bytes or any(kind.kind not in "iuf" or min(shape, default=0) < 0 for kind, shape in kinds):
            raise ValueError("it is not of numbers, or of more than %d bytes" % most_bytes)
        return tuple(np.empty(shape, kind) for kind, shape in kinds)
    except (TypeError, ValueError) as error:
        raise WireError("cannot receive arrays of %r: %s" % (specs, error)) from error


def send_named(connection: Connection, state: Mapping[str, Arrays]) -> None:
    """Send arrays with their names. Raises WireError."""
    head = NamedArrays({name: describe(arrays) for name, arrays in state.items()})
    connection.send(head, as_bytes([array for arrays in state.values() for array in arrays]))


def receive_named(connection: Connection, layout: Layout, members: int) -> Dict[str, Arrays]:
    """Receive the named arrays of a member of a run with so many members.

    Raises WireError, also for more bytes under one name than such a member has.
    """
    most_bytes = 64 * (layout.parameters + layout.state) * (members + 1) + (1 << 16)
    found: Dict[str, Arrays] = {}

    def payload(head: NamedArrays) -> Any:
        found.update({name: allocate(specs, most_bytes) for name, specs in head.arrays.items()})
        return as_bytes([array for arrays in found.values() for array in arrays])

    connection.receive(NamedArrays, payload=payload)
    return found
