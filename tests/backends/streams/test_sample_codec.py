"""A sample is its arrays as numpy.save writes them; anything else is refused with the reason."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.data.loader import ArraySamples, ItemSamples
from backends.streams.sample_codec import ArrayCodec, PositionCodec
from tests.backends.fakes import CLASSES, images
from tests.backends.stream_sources import CODEC

PIXELS, LABELS = images(5)


def saved(*arrays: object) -> bytes:
    stream = io.BytesIO()
    for array in arrays:
        np.save(stream, np.asarray(array))
    return stream.getvalue()


def test_they_are_what_numpy_saves_and_a_label_may_have_another_width() -> None:
    assert CODEC.encode((PIXELS[0], LABELS[0])) == saved(PIXELS[0], LABELS[0])
    narrow = saved(PIXELS[0], np.int32(LABELS[0]))
    assert CODEC.checked(narrow) == CODEC.encode((PIXELS[0], LABELS[0]))


NO_SAMPLES = [
    (b"", "not of 2 arrays"),
    (saved(PIXELS[0], LABELS[0])[:-1], "not of 2 arrays"),
    (saved(PIXELS[0], LABELS[0]) + b"x", "more than 2 arrays"),
    (saved(PIXELS[0][:1], LABELS[0]), r"uint8 \(1, 2, 3\), expected uint8 \(2, 2, 3\)"),
    (saved(PIXELS[0] / 255.0, LABELS[0]), "float64"),
    (saved(PIXELS[0], CLASSES), "its label is 3, of 3 classes"),
    (saved(PIXELS[0], -1), "its label is -1"),
    (saved(np.array([{}], object), LABELS[0]), "not of 2 arrays"),
]


@pytest.mark.parametrize(("payload", "reason"), NO_SAMPLES)
def test_what_is_no_sample_is_refused(payload: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        CODEC.checked(payload)


def test_numbers_that_are_not_finite_are_refused() -> None:
    codec = ArrayCodec.of(ArraySamples(np.zeros((1, 2), np.float32), np.zeros(1, np.int64)))
    bad, good = (saved(np.array([0, value], np.float32), 0) for value in (np.nan, 1.0))
    with pytest.raises(ValueError, match="not finite"):
        codec.checked(bad)
    assert codec.all_sound([good, good]) and not codec.all_sound([good, bad])


USUAL = [saved(PIXELS[row], LABELS[row]) for row in range(5)]
#: A label of another width: sound, but not as ``encode`` writes it.
NARROW = saved(PIXELS[0], np.int32(LABELS[0]))


@given(st.lists(st.sampled_from(USUAL), min_size=1, max_size=8))
def test_many_samples_are_checked_and_stacked_at_once(payloads: list[bytes]) -> None:
    assert CODEC.all_sound(payloads)
    pixels, labels = CODEC.batch(payloads)
    rows = [USUAL.index(payload) for payload in payloads]
    assert np.array_equal(pixels, PIXELS[rows]) and np.array_equal(labels, LABELS[rows])
    assert pixels.flags.writeable and labels.flags.writeable


@given(st.lists(st.sampled_from([*USUAL, NARROW, *(payload for payload, _ in NO_SAMPLES)]), min_size=1, max_size=4))
def test_nothing_passes_at_once_that_would_not_pass_alone(payloads: list[bytes]) -> None:
    passes = CODEC.all_sound(payloads)
    assert passes == all(payload in USUAL for payload in payloads)
    if passes:
        assert [CODEC.checked(payload) for payload in payloads] == payloads


def test_a_position_stands_for_a_sample_of_any_kind() -> None:
    codec = PositionCodec(ItemSamples(["a", "b", "c"], list, np.asarray))
    payloads = [codec.encode(position) for position in (2, 0)]
    assert codec.checked(payloads[0]) == payloads[0]
    assert codec.batch(payloads) == ["c", "a"]
    for payload in (codec.encode(3), payloads[0][:-1]):
        with pytest.raises(ValueError, match="no position"):
            codec.checked(payload)
