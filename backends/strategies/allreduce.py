"""Ring all-reduce sums vectors around a ring: reduce-scatter, then all-gather.

Source: Patarasuk and Yuan, 2009. The vector is cut into n chunks, and each rank sends to the next
in 2 (n - 1) rounds: first its own chunk, then the one that it received in the round before. In the
first half of the rounds a received chunk is added to one's own, in the second half it replaces it.
So a rank sends 2 (n - 1) / n of a vector, and all ranks end with the same bits of the sum.

Chunks are sent in pieces, each as soon as it has been processed, so that transfers and additions
overlap. No copy is needed: a piece that was sent is not written again before it has passed the
whole ring.
"""

from typing import Callable, List, NamedTuple, Tuple

import numpy as np

from backends.strategies.message import DENSE, Message, add, put

Encode = Callable[[np.ndarray], Message]

#: Elements of a piece: 256 KiB stay in a cache between receiving and sending, and take 2 ms at 1
#: Gbit/s.
PIECE = 1 << 16


class Piece(NamedTuple):
    """Elements [start, end) that a rank receives.

    adds: they are added to the rank's own; else they take their place.
    sent_on: they, or the sums, then go to the next rank.
    """

    start: int
    end: int
    adds: bool
    sent_on: bool


def bounds(size: int, n: int) -> List[Tuple[int, int]]:
    """Start and end of the n chunks of ``size`` elements; sizes differ by at most one."""
    return [(size * i // n, size * (i + 1) // n) for i in range(n)]


def departures(rank: int, n: int, size: int, most: int = PIECE) -> List[Tuple[int, int]]:
    """Start and end of the pieces, of ``most`` elements, that a rank sends before it receives."""
    return _pieces(bounds(size, n)[rank], most) if n > 1 else []


def arrivals(rank: int, n: int, size: int, most: int = PIECE) -> List[Piece]:
    """All pieces that a rank receives; those sent on follow the departures, in the same order."""
    chunks, rounds = bounds(size, n), 2 * (n - 1)
    return [
        Piece(start, end, i < n - 1, i < rounds - 1)
        for i in range(rounds)
        for start, end in _pieces(chunks[(rank - i - 1) % n], most)
    ]


def absorb(vector: np.ndarray, piece: Piece, message: Message) -> None:
    """Add a received piece to the (size,) vector, or copy it to its place."""
    part = vector[piece.start : piece.end]
    if piece.adds:
        add(message, part)
    else:
        put(message, part)


def departing(part: np.ndarray, encode: Encode) -> Message:
    """The message of a piece that is sent.

    Values that the encoding rounds are rounded in the vector too: all ranks end with the same bits.
    """
    message = encode(part)
    if message.kind != DENSE:
        put(message, part)
    return message


def _pieces(chunk: Tuple[int, int], most: int) -> List[Tuple[int, int]]:
    start, end = chunk
    return [(at, min(at + most, end)) for at in range(start, end, most)]
