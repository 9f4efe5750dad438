"""Batches take in samples of other devices in the place of own ones, and give some of their own."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.data.arrivals import Arrivals, never
from backends.data.injected import NO_INJECTION
from backends.data.loader import ArraySamples, BatchLoader, ItemSamples
from backends.data.micro_batches import SplitBatch, in_parts
from backends.data.sequential_samples import SampleStream
from backends.protocol.frames import Share
from backends.streams.injection import InjectedBatches, SampleInjection, codec_of
from backends.streams.sample_codec import ArrayCodec
from backends.streams.segments import SegmentFolder
from tests.backends.fakes import CLASSES, images
from tests.backends.stream_sources import narrowed

BATCH = 8
CODEC = codec_of(ArraySamples(*images(4)), CLASSES)


def sample(brightness: int, label: int = 0) -> bytes:
    """A sample that is none of the device's own: all its pixels are alike."""
    return CODEC.encode((np.full((2, 2, 3), brightness, np.uint8), np.int64(label)))


def injection(most_share: float = 1.0, batch: int = BATCH, folder: Path = Path("none")) -> SampleInjection:
    return SampleInjection(CODEC, batch, most_share, 3, SegmentFolder(str(folder)).set_aside)


def batches(made: SampleInjection, count: int = 50) -> InjectedBatches:
    return InjectedBatches(BatchLoader(ArraySamples(*images(count)), BATCH, 0), made)


def foreign(batch: tuple[np.ndarray, ...]) -> list[int]:
    """The brightness of the samples of others in a batch."""
    pixels = batch[0].reshape(len(batch[0]), -1)
    return [int(row[0]) for row in pixels if (row == row[0]).all()]


# -- taking in -------------------------------------------------------------------------------------


def test_they_take_the_place_of_own_ones_so_that_the_batch_stays_as_large_as_it_is() -> None:
    made = injection()
    mixed = batches(made)
    made.receive([sample(200), sample(201), sample(202)])
    first, second = next(mixed), next(mixed)
    assert [len(first[0]), len(first[1]), len(second[0])] == [BATCH] * 3
    assert (foreign(first), foreign(second)) == ([200, 201, 202], [])
    assert first[0].dtype == np.uint8 and first[1].dtype == np.int64


def test_no_own_sample_is_passed_over() -> None:
    made = injection()
    mixed, plain = batches(made), BatchLoader(ArraySamples(*images(50)), 2 * BATCH - 3, 0)
    made.receive([sample(200), sample(201), sample(202)])
    own = np.concatenate([next(mixed)[0][: BATCH - 3], next(mixed)[0]])
    assert np.array_equal(own, next(plain)[0])


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, BATCH))
def test_a_batch_has_an_own_sample_and_none_is_lost_without_being_counted(arrivals: list[int], batch: int) -> None:
    made = injection(batch=batch)
    mixed = batches(made)
    mixed.batch = batch
    for count in arrivals:
        made.receive([sample(200)] * count)
        ready = made.ready(batch)
        drawn = next(mixed)
        assert len(drawn[0]) == batch and len(foreign(drawn)) == ready < batch
    told = made.statistics()
    assert told.received == sum(arrivals) == told.used + told.waiting + told.dropped
    assert told.received_bytes == sum(arrivals) * len(sample(200))
    assert told.waiting <= batch


def test_of_a_stream_only_the_own_samples_are_waited_for() -> None:
    waited: list[int] = []

    class Waited(Arrivals):
        def wait(self, count: int, over: Callable[[], bool] = never) -> None:
            waited.append(count)

    made = injection()
    mixed = batches(made)
    mixed.arrivals = Waited()
    mixed.wait()
    made.receive([sample(200)] * 3)
    mixed.wait()
    assert waited == [BATCH, BATCH - 3]


def test_a_batch_in_parts_takes_them_in_once() -> None:
    made = injection()
    split = in_parts(batches(made), 3)
    assert split.injection is made
    made.receive([sample(200)] * 4)
    made.begin_step(Share(2, ("pc",)))
    drawn = next(split)
    assert isinstance(drawn, SplitBatch)
    assert [part.samples for part in drawn.parts] == [3, 3, 2]
    assert sum(len(foreign(part.batch)) for part in drawn.parts) == 4
    assert len(made.take_given(True).payloads) == 2


def test_malformed_ones_are_counted_and_set_aside(tmp_path: Path) -> None:
    made = injection(folder=tmp_path / "aside")
    made.receive([sample(200), b"noise", sample(1, label=CLASSES), sample(201)])
    told = made.statistics()
    assert (told.received, told.malformed, told.waiting) == (2, 2, 2)
    assert b"noise" in Path(told.set_aside).read_bytes()
    assert foreign(next(batches(made))) == [200, 201]


# -- giving ----------------------------------------------------------------------------------------


def test_samples_in_other_forms_are_taken_in_the_jobs_own() -> None:
    made = injection()
    made.receive([narrowed(sample(200, 2))])
    assert made.take(BATCH) == [sample(200, 2)]


def test_own_samples_of_the_first_batch_of_a_step_are_given_and_never_those_of_others() -> None:
    made = injection()
    mixed = batches(made)
    made.receive([sample(200)] * 5)
    made.begin_step(Share(BATCH, ("pc", "tx2")))
    drawn, _ = next(mixed), next(mixed)
    given_ = made.take_given(through_server=False)
    assert given_.receivers == ("pc", "tx2")
    pixels, _ = CODEC.batch(given_.payloads)
    assert sorted(map(bytes, pixels)) == sorted(map(bytes, drawn[0][: BATCH - 5]))
    assert made.take_given(through_server=False).payloads == ()


def test_no_more_than_the_share_that_the_operator_allows_leaves_the_device() -> None:
    made = injection(most_share=0.25)
    made.begin_step(Share(BATCH, ("pc",)))
    next(batches(made))
    assert len(made.take_given(True).payloads) == BATCH // 4


@pytest.mark.parametrize(("through_server", "copies"), [(True, 1), (False, 2)])
def test_what_was_given_to_whom_is_told_with_its_bytes(through_server: bool, copies: int) -> None:
    made = injection()
    mixed = batches(made)
    for receivers in (("pc", "tx2"), ("nano", "pc")):
        made.begin_step(Share(3, receivers))
        next(mixed)
        made.take_given(through_server)
    told = made.statistics()
    assert told.shared_with == {"pc": 6, "tx2": 3, "nano": 3}
    assert (told.shared, told.sent_bytes) == (6, 6 * copies * CODEC.sample_bytes)


def test_an_abandoned_step_gives_nothing() -> None:
    made = injection()
    made.begin_step(Share(3, ("pc",)))
    next(batches(made))
    made.begin_step(None)
    assert made.take_given(True).payloads == ()
    assert made.statistics().shared == 0


# -- what cannot be given --------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [SampleStream(lambda: iter(()), list), ItemSamples(["a"], list, np.asarray)])
def test_samples_without_a_position_or_arrays_cannot_be_given_to_others(samples: object) -> None:
    with pytest.raises(ValueError, match="only samples that are tuples of arrays"):
        codec_of(samples, None)


def test_a_batch_whose_samples_have_another_shape_than_the_first_is_refused() -> None:
    made = injection()
    made.begin_step(Share(1, ("pc",)))
    with pytest.raises(ValueError, match=r"samples of shapes \[\(3,\), \(\)\], and the first sample has \[\(2, 2, 3\)"):
        made.give_of([np.zeros((4, 3), np.uint8), np.zeros(4, np.int64)])


def test_a_device_without_injection_refuses_samples_and_gives_none() -> None:
    with pytest.raises(ValueError, match="no data injection was asked for"):
        NO_INJECTION.receive([sample(1)])
    NO_INJECTION.begin_step(Share(3, ("pc",)))
    assert NO_INJECTION.take_given(True).payloads == () and NO_INJECTION.statistics() is None


def test_all_samples_of_a_codec_have_its_bytes() -> None:
    codec = ArrayCodec.of(ArraySamples(np.zeros((3, 5), np.float32), np.zeros(3, np.int64)))
    assert codec.sample_bytes == len(codec.encode((np.ones(5, np.float32), np.int64(1))))
