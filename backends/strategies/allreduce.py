"""Ring all-reduce sums vectors around a ring: reduce-scatter, then all-gather.

Patarasuk and Yuan, 2009. Each rank sends to the next.

The vector is cut into n chunks. In each of 2 (n - 1) rounds a rank sends on the chunk that came
in the round before, beginning with its own. In the first half what comes is added to one's own,
in the second it takes its place: a rank sends 2 (n - 1) / n of a vector, and all end with the
same bits.

Chunks travel in pieces, each sent on as soon as it has been dealt with, so that transfers and
additions overlap. No copy is needed: what is sent is not written to again before it has been
around the ring. The result is the sum; it is the mean where all have scaled theirs by 1 / n,
which a worker's learning rate takes in for nothing.
"""

from collections import deque
from typing import Callable, Deque, List, NamedTuple, Sequence, Tuple

import numpy as np

from backends.strategies.message import DENSE, Message, add, dense, put

Encode = Callable[[np.ndarray], Message]

#: Elements of a piece: 256 KiB stay in a cache between coming and being sent on, and take 2 ms at
#: 1 Gbit/s.
PIECE = 1 << 16


class Round(NamedTuple):
    """The chunks that a rank sends and receives, and whether what it receives is added to its own
    or replaces it.
    """

    sent: int
    received: int
    adds: bool


class Piece(NamedTuple):
    """Elements [start, end) that come from the rank before; ``adds`` as in Round; whether they
    are then sent on.
    """

    start: int
    end: int
    adds: bool
    sent_on: bool


def bounds(size: int, n: int) -> List[Tuple[int, int]]:
    """Start and end of the n chunks of ``size`` elements; they differ by at most one in size, and
    may be empty.
    """
    return [(size * i // n, size * (i + 1) // n) for i in range(n)]


def schedule(rank: int, n: int) -> List[Round]:
    """The 2 (n - 1) rounds of a rank."""
    return [Round((rank - i) % n, (rank - i - 1) % n, i < n - 1) for i in range(2 * (n - 1))]


def departures(rank: int, n: int, size: int, most: int = PIECE) -> List[Tuple[int, int]]:
    """Start and end of the pieces, of at most ``most`` elements, that a rank sends before any has
    come; in order.
    """
    return _pieces(bounds(size, n)[rank], most) if n > 1 else []


def arrivals(rank: int, n: int, size: int, most: int = PIECE) -> List[Piece]:
    """All pieces that come, in order. Those to be sent on follow the departures, in the same
    order.
    """
    chunks, rounds = bounds(size, n), schedule(rank, n)
    return [
        Piece(start, end, each.adds, i < len(rounds) - 1)
        for i, each in enumerate(rounds)
        for start, end in _pieces(chunks[each.received], most)
    ]


def absorb(vector: np.ndarray, piece: Piece, message: Message) -> None:
    """Add a piece that has come to the (size,) vector, or put it in its place."""
    part = vector[piece.start : piece.end]
    if piece.adds:
        add(message, part)
    else:
        put(message, part)


def departing(part: np.ndarray, encode: Encode) -> Message:
    """A piece as it goes on its way. What is rounded on it is rounded here too, so that all end
    with the same bits.
    """
    message = encode(part)
    if message.kind != DENSE:
        put(message, part)
    return message


def in_memory(vectors: Sequence[np.ndarray], most: int = PIECE, encode: Encode = dense) -> int:
    """What a ring does with the (size,) vectors of its ranks: each becomes their sum, in place.

    Dense messages are views: nothing is copied before the next rank deals with it. Returns the
    bytes of all messages.
    """
    n, size = len(vectors), vectors[0].size
    coming: List[Deque[Message]] = [deque() for _ in vectors]
    awaited = [deque(arrivals(rank, n, size, most)) for rank in range(n)]
    total = 0

    def send(rank: int, start: int, end: int) -> int:
        message = departing(vectors[rank][start:end], encode)
        coming[(rank + 1) % n].append(message)
        return message.traffic_bytes

    for rank in range(n):
        total += sum(send(rank, start, end) for start, end in departures(rank, n, size, most))
    while any(awaited):
        for rank, vector in enumerate(vectors):
            if coming[rank]:
                piece = awaited[rank].popleft()
                absorb(vector, piece, coming[rank].popleft())
                if piece.sent_on:
                    total += send(rank, piece.start, piece.end)
    return total


def _pieces(chunk: Tuple[int, int], most: int) -> List[Tuple[int, int]]:
    start, end = chunk
    return [(at, min(at + most, end)) for at in range(start, end, most)]
