"""A message says in few bytes which part of a vector it is, and fits no other."""

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from backends.protocol.frames import MessageHead
from backends.protocol.json_messages import decode, encode_list
from backends.strategies import message as messages
from backends.strategies.message import Message, add, buffers, bytes_of, dense, half, put, spans, sparse, whole
from tests.backends.strategies.vectors import floats, received
from tests.mutations import MUTATIONS, mutated

VALUES = np.array([1.0, -2.0, 3.0, 0.5, 8.0], np.float32)


def some_of(kind, values, chosen):
    """A message of any kind; ``chosen``: one bool an element."""
    if kind == messages.SPARSE:
        return sparse(values, np.flatnonzero(chosen))
    if kind == messages.SPANS:
        return spans(values, [(int(i), int(i) + 1) for i in np.flatnonzero(chosen)])
    return dense(values) if kind == messages.DENSE else half(values)


def test_a_dense_message_is_the_vector_itself():
    message = dense(VALUES)
    assert message.head == ("dense", 5, (5,))
    assert message.arrays[0] is VALUES


def test_half_rounds_and_stays_in_range():
    message = half(floats(1.5, 1 + 2**-13, 1e6, -1e6))
    assert message.head == ("half", 4, (4,))
    np.testing.assert_array_equal(whole(message), floats(1.5, 1.0, 65504, -65504))


def test_spans_are_their_edges_and_their_values():
    message = spans(VALUES, [(0, 2), (4, 5)])
    assert message.head == ("spans", 5, (2, 3))
    np.testing.assert_array_equal(message.arrays[0], [[0, 2], [4, 5]])
    np.testing.assert_array_equal(whole(message), floats(1, -2, 0, 0, 8))


def test_half_travels_as_its_bits():
    assert half(floats(1.0, -2.0)).arrays[0].tolist() == [0x3C00, 0xC000]


def test_no_span_at_all_is_a_message_too():
    assert spans(VALUES, []).head.counts == (0, 0)
    assert not whole(spans(VALUES, [])).any()


def test_a_sparse_message_is_indices_and_their_values():
    message = sparse(VALUES, np.array([1, 3]))
    assert message.head == ("sparse", 5, (2, 2))
    np.testing.assert_array_equal(whole(message), floats(0, -2, 0, 0.5, 0))


def test_bytes_are_those_of_the_head_and_of_the_arrays():
    head = '{"kind": "sparse", "size": 5, "counts": [2, 2]}'
    assert sparse(VALUES, np.array([1, 3])).traffic_bytes == len(head) + 2 * 4 + 2 * 4


@pytest.mark.parametrize(
    ("message", "counts"),
    [
        (dense(VALUES), [5]),
        (half(VALUES), [5]),
        (spans(VALUES, [(0, 2), (4, 5)]), [2, 3]),
        (sparse(VALUES, np.array([1, 3])), [2, 2]),
    ],
)
def test_bytes_are_known_without_values(message, counts):
    assert bytes_of(message.kind, 5, *counts) == message.traffic_bytes


@settings(max_examples=60, deadline=None)
@given(
    kind=some.sampled_from([messages.DENSE, messages.HALF, messages.SPANS, messages.SPARSE]),
    chosen=some.lists(some.booleans(), min_size=1, max_size=30),
    scale=some.sampled_from([1.0, 0.5, -3.0]),
)
def test_what_arrives_is_what_was_sent(kind, chosen, scale):
    values = np.arange(1, len(chosen) + 1, dtype=np.float32)  # exact in float16
    kept = np.array(chosen) if kind in (messages.SPANS, messages.SPARSE) else np.ones(len(chosen), bool)
    arrived = received(some_of(kind, values, chosen))
    np.testing.assert_array_equal(whole(arrived), np.where(kept, values, 0))
    total = np.full(len(chosen), 7, np.float32)
    add(arrived, total, scale)
    np.testing.assert_array_equal(total, 7 + np.float32(scale) * np.where(kept, values, 0))
    put(arrived, total)
    np.testing.assert_array_equal(total[kept], values[kept])


def test_put_leaves_what_was_not_sent():
    total = floats(10, 20, 30, 40, 50)
    put(spans(VALUES, [(1, 3)]), total)
    np.testing.assert_array_equal(total, floats(10, -2, 3, 40, 50))
    put(sparse(VALUES, np.array([4])), total)
    np.testing.assert_array_equal(total, floats(10, -2, 3, 40, 8))


def test_half_is_scaled_in_full_precision():
    total = np.zeros(1, np.float32)
    add(half(floats(60000)), total, 3.0)
    assert total[0] == 3 * np.float32(np.float16(60000))


@pytest.mark.parametrize(
    "head",
    [
        ("dense", 4, ()),
        ("dense", 4, (3,)),
        ("dense", 5, (5,)),
        ("half", 4, (4, 4)),
        ("spans", 4, (1,)),
        ("spans", 4, (1, 5)),
        ("sparse", 4, (1, 2)),
        ("sparse", 4, (-1, -1)),
        ("sparse", 4, (5, 5)),
        ("other", 4, (4,)),
    ],
)
def test_a_head_that_fits_no_message_of_this_vector_is_refused(head):
    with pytest.raises(ValueError, match="message"):
        buffers(MessageHead(*head), 4)


def refused(message, size=4):
    for use in (add, put):
        total = np.ones(size, np.float32)
        with pytest.raises(ValueError, match="message"):
            use(message, total)
        np.testing.assert_array_equal(total, 1)


@pytest.mark.parametrize(
    ("edges", "values"),
    [
        ([[0, 2], [1, 3]], 4),  # overlap
        ([[2, 3], [0, 1]], 2),  # descend
        ([[2, 1]], 1),  # end before they start
        ([[3, 5]], 2),  # end beyond the vector
        ([[0, 2]], 3),  # of another length than the values
        ([], 1),
    ],
)
def test_spans_that_do_not_fit_are_refused(edges, values):
    edges = np.array(edges, np.uint32).reshape(-1, 2)
    refused(Message(messages.SPANS, 4, (edges, np.zeros(values, np.float32))))


@pytest.mark.parametrize("indices", [[1, 1], [2, 1], [4], [0, 2**32 - 1], [2**32 - 1, 0]])
def test_indices_that_do_not_fit_are_refused(indices):
    refused(Message(messages.SPARSE, 4, (np.array(indices, np.uint32), np.zeros(len(indices), np.float32))))


@pytest.mark.parametrize("kind", [messages.DENSE, messages.HALF, messages.SPANS, messages.SPARSE])
def test_a_message_of_another_vector_is_refused(kind):
    refused(some_of(kind, np.ones(1, np.float32), [True]))


@MUTATIONS
@given(
    some.sampled_from([dense(VALUES), half(VALUES), sparse(VALUES, np.array([1, 3])), spans(VALUES, [(0, 2)])])
    .map(lambda message: json.loads(json.dumps(encode_list(message.head))))
    .flatmap(mutated)
)
def test_a_head_that_is_damaged_is_refused_or_that_of_a_message(head):
    with contextlib.suppress(ValueError):
        room = buffers(decode(head, [MessageHead]), VALUES.size)
        assert room.traffic_bytes <= 16 * VALUES.size
