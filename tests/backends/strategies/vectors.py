"""Short vectors, models of one variable, and what arrives of a message, for tests of strategies."""

import numpy as np

from backends.frameworks.layout import Variable
from backends.network.framing import as_bytes
from backends.strategies.message import Message, buffers


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def one_variable(size: int) -> tuple[Variable, ...]:
    """A model whose only variable has so many elements."""
    return (Variable("all", (size,), 0, size),)


def received(message: Message) -> Message:
    """What arrives of a message: its head as JSON, and its bytes."""
    arrived = buffers(message.head, message.size)
    for sent, room in zip(as_bytes(message.arrays), as_bytes(arrived.arrays), strict=True):
        room[:] = sent
    return arrived
