"""Every rank of the ring ends with the same sum, having sent 2 (n - 1) / n of a vector."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.frameworks.layout import Variable
from backends.strategies.allreduce import (
    PIECE,
    Encode,
    Piece,
    absorb,
    arrivals,
    bounds,
    departing,
    departures,
)
from backends.strategies.compressors.registry import CompressorSpec
from backends.strategies.message import WHOLE, Message, dense
from backends.strategies.topologies.registry import TopologySpec


def in_memory(vectors: list[np.ndarray], most: int = PIECE, encode: Encode = dense) -> int:
    """Run the all-reduce over the (size,) vectors of all ranks: each becomes their sum, in place.

    Dense messages are views; nothing is copied before the next rank processes it.
    Returns the bytes of all messages.
    """
    n, size = len(vectors), vectors[0].size
    in_transit: list[deque[Message]] = [deque() for _ in vectors]
    expected = [deque(arrivals(rank, n, size, most)) for rank in range(n)]
    total = 0

    def send(rank: int, start: int, end: int) -> int:
        message = departing(vectors[rank][start:end], encode)
        in_transit[(rank + 1) % n].append(message)
        return message.traffic_bytes

    for rank in range(n):
        total += sum(send(rank, start, end) for start, end in departures(rank, n, size, most))
    while any(expected):
        for rank, vector in enumerate(vectors):
            if in_transit[rank]:
                piece = expected[rank].popleft()
                absorb(vector, piece, in_transit[rank].popleft())
                if piece.sent_on:
                    total += send(rank, piece.start, piece.end)
    return total


def test_chunks_cover_the_vector_and_differ_by_at_most_one():
    assert bounds(10, 3) == [(0, 3), (3, 6), (6, 10)]
    assert bounds(2, 3) == [(0, 0), (0, 1), (1, 2)]
    assert bounds(0, 2) == [(0, 0), (0, 0)]


def test_the_first_of_three_gathers_chunk_1_and_then_takes_the_others():
    assert departures(0, 3, 3) == [(0, 1)]
    assert arrivals(0, 3, 3) == [
        Piece(2, 3, True, True),
        Piece(1, 2, True, True),
        Piece(0, 1, False, True),
        Piece(2, 3, False, False),
    ]


def test_alone_there_is_nothing_to_do():
    vector = np.array([1.0, 2.0], np.float32)
    assert departures(0, 1, 2) == arrivals(0, 1, 2) == []
    in_memory([vector])
    assert vector.tolist() == [1.0, 2.0]


def test_chunks_travel_in_pieces():
    assert departures(0, 2, 5, most=2) == [(0, 2)]
    assert arrivals(0, 2, 5, most=2) == [Piece(2, 4, True, True), Piece(4, 5, True, True), Piece(0, 2, False, False)]
    assert departures(1, 2, 5, most=2) == [(2, 4), (4, 5)]
    assert arrivals(1, 2, 5, most=2) == [Piece(0, 2, True, True), Piece(2, 4, False, False), Piece(4, 5, False, False)]


def test_a_piece_is_added_or_takes_its_place():
    vector = np.array([1.0, 2.0, 3.0], np.float32)
    absorb(vector, Piece(1, 3, True, True), dense(np.array([10.0, 20.0], np.float32)))
    assert vector.tolist() == [1.0, 12.0, 23.0]
    absorb(vector, Piece(0, 2, False, False), dense(np.array([7.0, 8.0], np.float32)))
    assert vector.tolist() == [7.0, 8.0, 23.0]


@settings(max_examples=150, deadline=None)
@given(n=some.integers(1, 7), size=some.integers(0, 40), most=some.integers(1, 12), seed=some.integers(0, 1000))
def test_every_rank_ends_with_the_same_mean(n, size, most, seed):
    values = np.random.default_rng(seed).normal(size=(n, size))
    vectors = [(each / n).astype(np.float32) for each in values]
    in_memory(vectors, most)
    for vector in vectors:
        np.testing.assert_array_equal(vector, vectors[0])
        np.testing.assert_allclose(vector, values.mean(axis=0), atol=1e-5)


@settings(max_examples=60, deadline=None)
@given(n=some.integers(1, 7), size=some.integers(0, 40), most=some.integers(1, 12), seed=some.integers(0, 1000))
def test_rounded_on_the_way_every_rank_still_ends_with_the_same_bits(n, size, most, seed):
    values = np.random.default_rng(seed).normal(size=(n, size))
    vectors = [(each / n).astype(np.float32) for each in values]
    in_memory(vectors, most, WHOLE["float16"])
    for vector in vectors:
        np.testing.assert_array_equal(vector, vectors[0])
        np.testing.assert_allclose(vector, values.mean(axis=0), atol=0.01)


@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("name", WHOLE)
def test_its_messages_have_the_bytes_that_sender_and_topology_predict(name, n):
    """But for the heads of the pieces, of which each has one."""
    size = 3 * PIECE
    sent = in_memory([np.ones(size, np.float32) for _ in range(n)], encode=WHOLE[name])
    (traffic,) = TopologySpec.from_text("ring").build().traffic(0, n)
    message = CompressorSpec.from_text(name).build([Variable("w", (size,), 0, size)]).traffic_bytes()
    assert sent == pytest.approx(n * traffic.messages * traffic.share * message, rel=0.003)
