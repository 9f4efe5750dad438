"""Samples travel in frames of bounded size, and arrive as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.network import sample_frames
from backends.protocol.frames import SharedSamples


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=20))
def test_they_arrive_as_they_were(payloads: list[bytes]) -> None:
    found = []
    for head, content in sample_frames.packed(payloads, 3):
        assert head.step == 3
        room = sample_frames.room(head)
        room[:] = content
        found += sample_frames.unpacked(head, room)
    assert found == payloads


def test_many_or_large_samples_take_several_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample_frames, "MOST_SAMPLES", 3)
    assert [len(head.sizes) for head, _ in sample_frames.packed([b"ab"] * 7, 0)] == [3, 3, 1]
    monkeypatch.setattr(sample_frames, "MOST_BYTES", 5)
    assert [len(head.sizes) for head, _ in sample_frames.packed([b"ab"] * 3, 0)] == [2, 1]


@pytest.mark.parametrize("sizes", [(sample_frames.MOST_BYTES, 1), (0,) * (sample_frames.MOST_SAMPLES + 1)])
def test_nothing_is_allocated_for_more_than_a_frame_may_hold(sizes: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="too many for a frame"):
        sample_frames.room(SharedSamples(0, sizes))


def test_a_sample_that_fits_into_no_frame_is_refused_beforehand() -> None:
    sample_frames.require_room(sample_frames.MOST_BYTES)
    with pytest.raises(ValueError, match="at most 16777216 can be given"):
        sample_frames.require_room(sample_frames.MOST_BYTES + 1)
