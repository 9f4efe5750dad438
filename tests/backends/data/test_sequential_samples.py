"""Samples that are read in order: every member has its share, and batches go round and round."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.data.sequential_samples import SampleStream, owners


def stream(count: int) -> SampleStream:
    return SampleStream(lambda: iter(range(count)), list)


@given(st.integers(1, 50), st.integers(1, 20))
def test_an_evaluation_reads_every_sample_once(count, size) -> None:
    batches = list(stream(count).batches(size))
    assert [sample for _, batch in batches for sample in batch] == list(range(count))
    assert [samples for samples, _ in batches] == [len(batch) for _, batch in batches]
    assert all(len(batch) == size for _, batch in batches[:-1])


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=5), st.integers(1, 200))
def test_every_sample_belongs_to_one_member(weights, count) -> None:
    owner = owners(weights)
    assert all(0 <= owner(position) < len(weights) for position in range(count))


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_members_own_samples_in_proportion_to_their_weights(weights) -> None:
    owned = Counter(map(owners([float(weight) for weight in weights]), range(1000)))
    for member, weight in enumerate(weights):
        assert owned[member] == pytest.approx(1000 * weight / sum(weights), abs=12)


def test_batches_run_across_the_end_and_begin_again() -> None:
    loader = stream(5).loader(3)
    assert [next(loader) for _ in range(4)] == [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4, 0, 1]]


def test_two_members_share_the_samples() -> None:
    weights = (2.0, 1.0)
    parts = [stream(30).loader(1, weights, member) for member in range(2)]
    owned = [sorted({next(part)[0] for _ in range(40)}) for part in parts]
    assert sorted(owned[0] + owned[1]) == list(range(30))
    assert len(owned[0]) == pytest.approx(20, abs=1)


def test_the_batch_size_may_change() -> None:
    loader = stream(9).loader(2)
    first = next(loader)
    loader.batch = 4
    assert (first, next(loader)) == ([0, 1], [2, 3, 4, 5])


def test_an_empty_stream_has_no_batches() -> None:
    assert stream(0).is_empty and not stream(1).is_empty
    with pytest.raises(ValueError, match="ended before a first sample"):
        next(stream(0).loader(1))


def test_an_error_in_the_middle_is_the_users_and_is_passed_on() -> None:
    def broken():
        yield 1
        raise OSError("no such file")

    loader = SampleStream(broken, list).loader(2)
    with pytest.raises(OSError, match="no such file"):
        next(loader)
