"""Samples that members give to one another travel in frames of bounded size."""

from typing import Iterator, List, Sequence, Tuple

import numpy as np

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
