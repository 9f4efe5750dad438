"""Batches of a stream, each of which is there when its samples have arrived."""

from typing import Any, Callable, Tuple

import numpy as np

from backends.data.loader import ArraySamples, BatchSource, SampleSet
from backends.protocol.member_specs import StreamOrder
from backends.streams.arriving import ArrivingSamples
from backends.streams.buffer import TRUNCATE, PersistingBuffer, SampleBuffer, TruncatingBuffer
from backends.streams.directory import DirectorySource
from backends.streams.kafka_source import KafkaSource
from backends.streams.replay import ReplaySource
from backends.streams.sample_codec import NO_ARRAYS, ArrayCodec, PositionCodec, SampleCodec
from backends.streams.segments import SegmentFolder
from backends.streams.source import SampleSource
from backends.streams.spec import StreamSpec


class ArrivingBatchSource(BatchSource):
    """Endless batches of arriving samples. ``next`` waits for them without a limit of its own."""

    def __init__(self, arrivals: ArrivingSamples, codec: SampleCodec, batch: int) -> None:
        self.arrivals: ArrivingSamples = arrivals
        self.batch = batch
        self._codec = codec

    def __next__(self) -> Any:
        return self._codec.batch(self.arrivals.take(self.batch))


def stream_batches(
    order: StreamOrder, device: str, samples: Any, classes: Any, batch: int, path: str
) -> ArrivingBatchSource:
    """The batches of a member's stream.

    device: the member's name, for which rates are drawn.
    samples: the member's own training samples; classes: of known models, else None.
    path: of the folder for what memory has no room for.
    Raises ValueError where such samples cannot be streamed, or their source is not there.
    """
    spec = StreamSpec.from_text(order.text)
    folder = SegmentFolder(path)
    buffer: SampleBuffer = TruncatingBuffer() if spec.policy == TRUNCATE else PersistingBuffer(spec.memory, folder)
    source, codec = _source(spec, order, device, samples, classes)
    _require_reached(source, spec)
    arrivals = ArrivingSamples(source, codec, buffer, spec.patience_s, folder.set_aside)
    return ArrivingBatchSource(arrivals, codec, batch)


def _require_reached(source: SampleSource, spec: StreamSpec) -> None:
    try:
        source.require_reached()
    except ValueError as error:
        raise ValueError("--stream %s: %s" % (spec.text, error)) from error
    except OSError as error:
        reason = "%s: %s" % (source.name, error.strerror) if error.strerror else str(error)
        raise ValueError("--stream %s: %s; it has to be there before the run begins" % (spec.text, reason)) from error


def _source(
    spec: StreamSpec, order: StreamOrder, device: str, samples: Any, classes: Any
) -> Tuple[SampleSource, SampleCodec]:
    if spec.source != "replay":
        return source_from_elsewhere(spec, device), _codec(samples, classes)
    if not isinstance(samples, SampleSet):
        raise ValueError(
            "the job's data can only be read in order, and a replay needs samples by position; "
            "give a data set with __len__ and __getitem__"
        )
    encode, codec = _replayed(samples, classes)
    settings = spec.replay(device, order.rates_seed)
    return ReplaySource(len(samples), encode, settings, order.seed), codec


def source_from_elsewhere(spec: StreamSpec, device: str) -> SampleSource:
    """The source of a device's samples, which is no replay.

    Raises ValueError where a library is missing.
    """
    if spec.source == "directory":
        return DirectorySource(spec.place(device))
    return KafkaSource(spec.brokers(), spec.topic(device), spec.group(device))


def _codec(samples: Any, classes: Any) -> ArrayCodec:
    """For samples from elsewhere, which are like those that the device has."""
    if not isinstance(samples, SampleSet):
        raise ValueError(NO_ARRAYS)
    return ArrayCodec.of(samples, classes)


def _replayed(samples: SampleSet, classes: Any) -> Tuple[Callable[[int], bytes], SampleCodec]:
    """Images are delivered whole; of a job's samples, which may be anything, the position."""
    if type(samples) is ArraySamples and all(isinstance(array, np.ndarray) for array in samples.arrays):
        arrays = samples.arrays
        whole = ArrayCodec.of(samples, classes)
        return lambda position: whole.encode([array[position] for array in arrays]), whole
    return PositionCodec.encode, PositionCodec(samples)
