"""A message holds all of a vector, spans of it, or single elements, as arrays of raw bytes.

It is sent as a small JSON object, followed by the bytes of the arrays. Elements that it does not
hold are zero.
"""

import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from backends.optimizers.sgd import finite
from backends.protocol.frames import MessageHead
from backends.strategies import half_precision, low_rank, quantized

DENSE, HALF, SPANS, SPARSE = "dense", "half", "spans", "sparse"
LOW_RANK, QUANTIZED = "low-rank", "quantized"


class Message(NamedTuple):
    """The encoded elements of a vector.

    kind: one of these six.
    size: elements of the vector.
    arrays: contiguous, as they are sent; by kind:

    DENSE: (size,) float32.
    HALF: (size,) uint16, the bits of float16, which Python before 3.12 cannot view as bytes.
    SPANS: (n, 2) uint32 of start and end, ascending and disjoint; all their float32 values.
    SPARSE: (n,) uint32 indices, ascending; (n,) float32 values.
    LOW_RANK: (n, 4) uint32 and (m,) float32, see ``low_rank``.
    QUANTIZED: see ``quantized``.
    """

    kind: str
    size: int
    arrays: Tuple[np.ndarray, ...]

    @property
    def head(self) -> MessageHead:
        """What the receiver needs before the arrays."""
        return MessageHead(self.kind, self.size, tuple(int(array.shape[0]) for array in self.arrays))

    @property
    def traffic_bytes(self) -> int:
        """Bytes of the head and of the arrays."""
        return len(json.dumps(self.head._asdict())) + sum(array.nbytes for array in self.arrays)


def dense(values: np.ndarray) -> Message:
    """All of (size,) float32, without a copy."""
    return Message(DENSE, values.size, (values,))


def half(values: np.ndarray) -> Message:
    """All values, rounded to float16; values out of range are clipped."""
    return Message(HALF, values.size, (half_precision.encode(values),))


#: Encoders of whole vectors, by the names of the compressors that leave nothing out.
WHOLE: Dict[str, Callable[[np.ndarray], Message]] = {"dense": dense, "float16": half}


def spans(values: np.ndarray, parts: Sequence[Tuple[int, int]]) -> Message:
    """The elements [start, end) of each part; parts ascending and disjoint.

    A single part is not copied.
    """
    edges = np.array(parts, dtype=np.uint32).reshape(-1, 2)
    taken = [values[start:end] for start, end in parts]
    joined = taken[0] if len(taken) == 1 else np.concatenate([np.empty(0, np.float32), *taken])
    return Message(SPANS, values.size, (edges, joined))


def sparse(values: np.ndarray, indices: np.ndarray) -> Message:
    """The elements at ascending indices."""
    chosen = indices.astype(np.uint32)
    return Message(SPARSE, values.size, (chosen, values[chosen]))


def buffers(head: MessageHead, size: int, room: Optional[np.ndarray] = None) -> Message:
    """An empty message to receive into; ``room``: (size,) float32 for a dense one.

    Raises ValueError for a head that no message of ``size`` elements has.
    """
    kind, counts = head.kind, head.counts
    if head.size != size or len(counts) != _ARRAYS.get(kind) or not all(0 <= count <= size for count in counts):
        raise ValueError("a message of %d elements cannot begin with %r" % (size, head))
    if kind in (DENSE, HALF):
        if counts != (size,):
            raise ValueError("a %s message of %d elements has %d" % (kind, size, counts[0]))
        if kind == DENSE and room is not None:
            return dense(room)
        return Message(kind, size, (np.empty(size, np.float32 if kind == DENSE else np.uint16),))
    if kind == SPANS:
        return Message(kind, size, (np.empty((counts[0], 2), np.uint32), np.empty(counts[1], np.float32)))
    if kind == LOW_RANK:
        return Message(LOW_RANK, size, (np.empty((counts[0], 4), np.uint32), np.empty(counts[1], np.float32)))
    if kind == QUANTIZED:
        return Message(QUANTIZED, size, quantized.empty(*counts))
    if counts[0] != counts[1]:
        raise ValueError("a sparse message has %d indices and %d values" % (counts[0], counts[1]))
    return Message(SPARSE, size, (np.empty(counts[0], np.uint32), np.empty(counts[1], np.float32)))


_ARRAYS = {DENSE: 1, HALF: 1, SPANS: 2, SPARSE: 2, LOW_RANK: 2, QUANTIZED: 4}


def bytes_of(kind: str, size: int, *counts: int) -> int:
    """Bytes of a message from its kind and size; counts as in its head."""
    return buffers(MessageHead(kind, size, counts), size).traffic_bytes


def add(message: Message, total: np.ndarray, scale: float = 1.0) -> None:
    """total += scale * message, in place; (size,) float32.

    Raises ValueError for a message that does not fit.
    """
    for place, values in _parts(message, total):
        total[place] += values if scale == 1.0 else np.float32(scale) * values


def put(message: Message, total: np.ndarray) -> None:
    """Overwrite the elements of ``total`` that the message holds. Raises ValueError as ``add``."""
    for place, values in _parts(message, total):
        total[place] = values


def clear(message: Message, total: np.ndarray) -> None:
    """Set the elements of ``total`` that the message holds to 0. Raises ValueError as ``add``."""
    for place, _ in _parts(message, total):
        total[place] = 0.0


def whole(message: Message) -> np.ndarray:
    """The vector as a new (size,) float32, with zeros for missing elements."""
    total = np.zeros(message.size, np.float32)
    add(message, total)
    return total


def sound(message: Message) -> bool:
    """Whether all values are finite. Raises ValueError where it does not fit its own vector."""
    if message.kind == SPANS:
        _checked(message.arrays[0], message.arrays[1], message.size)
    elif message.kind == SPARSE:
        _ascending(message.arrays[0], message.size)
    elif message.kind == LOW_RANK:
        low_rank.checked(message.arrays[0], message.arrays[1], message.size)
    elif message.kind == QUANTIZED:
        quantized.decode(message.arrays, message.size)
    if message.kind == HALF:
        return bool(np.isfinite(message.arrays[0].view(np.float16)).all())
    return finite(message.arrays[-1].ravel())


def _parts(message: Message, total: np.ndarray) -> List[Tuple[Any, np.ndarray]]:
    """(place, float32 values) of each part, for a vector that the message must fit."""
    if message.size != total.size:
        raise ValueError("a message of %d elements does not fit a vector of %d" % (message.size, total.size))
    if message.kind == DENSE:
        return [(slice(None), message.arrays[0])]
    if message.kind == HALF:
        return [(slice(None), half_precision.decode(message.arrays[0]))]
    if message.kind == LOW_RANK:
        return list(low_rank.decode(message.arrays[0], message.arrays[1], total.size))
    if message.kind == QUANTIZED:
        return [quantized.decode(message.arrays, total.size)]
    places, values = message.arrays
    if message.kind == SPARSE:
        return [(_ascending(places, total.size), values)]
    edges = _checked(places, values, total.size)
    starts = np.cumsum([0] + [end - start for start, end in edges])
    return [(slice(start, end), values[at : at + end - start]) for (start, end), at in zip(edges, starts.tolist())]


def _checked(edges: np.ndarray, values: np.ndarray, size: int) -> Sequence[Tuple[int, int]]:
    flat = edges.astype(np.int64).reshape(-1)
    lengths = flat[1::2] - flat[::2]
    if flat.size and (flat[-1] > size or not np.all(np.diff(flat) >= 0)) or int(lengths.sum()) != values.size:
        raise ValueError("a message's spans do not fit its values or its vector")
    return [(int(start), int(end)) for start, end in edges]


def _ascending(indices: np.ndarray, size: int) -> np.ndarray:
    if indices.size and (int(indices[-1]) >= size or not np.all(indices[1:] > indices[:-1])):
        raise ValueError("a sparse message's indices are not ascending, or beyond its vector")
    return indices
