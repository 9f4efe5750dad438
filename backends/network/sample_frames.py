"""Samples that members give to one another travel in frames of bounded size."""

from typing import Any, Callable, Iterable, Iterator, List, Sequence, Tuple, Type

import numpy as np

from backends.network.framing import Connection, as_bytes
from backends.protocol.frames import SharedSamples

#: Of one frame.
MOST_SAMPLES, MOST_BYTES = 4096, 1 << 24


def require_room(sample_bytes: int) -> None:
    """Raises ValueError for samples that fit into no frame."""
    if sample_bytes > MOST_BYTES:
        raise ValueError("a sample has %d bytes, and at most %d can be given to others" % (sample_bytes, MOST_BYTES))


def packed(payloads: Sequence[bytes], step: int) -> Iterator[Tuple[SharedSamples, np.ndarray]]:
    """Frames with these samples, each of which fits into one, and the (bytes,) uint8 of each."""
    most = max(1, min(MOST_SAMPLES, MOST_BYTES // max(map(len, payloads), default=1)))
    for start in range(0, len(payloads), most):
        chosen = payloads[start : start + most]
        yield SharedSamples(step, tuple(map(len, chosen))), np.frombuffer(b"".join(chosen), np.uint8)


def room(head: SharedSamples) -> np.ndarray:
    """(bytes,) uint8 to receive into. Raises ValueError where a frame may not hold as much."""
    if len(head.sizes) > MOST_SAMPLES or sum(head.sizes) > MOST_BYTES:
        raise ValueError("%d samples of %d bytes are too many for a frame" % (len(head.sizes), sum(head.sizes)))
    return np.empty(sum(head.sizes), np.uint8)


def unpacked(head: SharedSamples, content: np.ndarray) -> List[bytes]:
    """The samples of a frame."""
    found, start = [], 0
    for size in head.sizes:
        found.append(content[start : start + size].tobytes())
        start += size
    return found


def send(connection: Connection, given: Iterable[Tuple[SharedSamples, np.ndarray]]) -> None:
    """Send such frames, whose bytes the connection does not count: who gives samples does."""
    counted = connection.sent_bytes
    for head, content in given:
        connection.send(head, as_bytes((content,)))
    connection.sent_bytes = counted


def receive(
    connection: Connection,
    kinds: Sequence[Type[Any]],
    payload: Callable[[Any], Sequence[memoryview]],
    take_in: Callable[[SharedSamples, np.ndarray], None],
) -> Any:
    """Receive a frame of these kinds, as ``Connection.receive``; take in samples before it."""
    content: List[np.ndarray] = []

    def buffers(head: Any) -> Sequence[memoryview]:
        if not isinstance(head, SharedSamples):
            return payload(head)
        content[:] = [room(head)]
        return as_bytes(content)

    while True:
        counted = connection.received_bytes
        found = connection.receive(*kinds, SharedSamples, payload=buffers)
        if not isinstance(found, SharedSamples):
            return found
        connection.received_bytes = counted
        take_in(found, content[0])
