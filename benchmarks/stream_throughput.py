"""Samples/s of streams, from the source to batches, beside what bounds them.

    python benchmarks/stream_throughput.py [--turns 9] [--json]

A replay of Fashion-MNIST that is as fast as it can be, on one core: drawn, encoded, checked,
buffered and stacked into batches. Target: 50,000 a second. Beside it the same images are taken one
by one from their array and stacked. Then a topic of Kafka, on the broker that is built into the
client library: the same path beside a consumer of confluent-kafka alone, from the first message to
the last. Target: half of it. They take turns, so that the machine's drift falls out of the ratios.
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import harmonic_mean
from typing import Any

import confluent_kafka
import numpy as np
from reporting import Spread, parser, show

from backends.data.dataset import Dataset
from backends.data.loader import ArraySamples
from backends.streams.arriving import ArrivingSamples
from backends.streams.buffer import PersistingBuffer
from backends.streams.kafka_source import KafkaSource, KafkaWriter, settings
from backends.streams.replay import ReplaySettings, ReplaySource
from backends.streams.sample_codec import ArrayCodec
from backends.streams.segments import SegmentFolder
from backends.streams.source import SampleSource, StreamRecord
from planner.train.training_data import load_dataset

DATA = Path(__file__).parents[1] / "examples/fashion-mnist"
BATCH = 64
REPLAYED = 20_000
#: Of a topic: whole batches of 512, so that no call waits for more. The broker keeps 5 MB.
IN_TOPIC = 6 * 512
#: Of one turn: a topic is read in two milliseconds.
PASSES = 8
#: Faster than anything, so that a replay is always late.
ENDLESS_RATE = 1e9
TARGETS = {"replay": "50,000 /s", "kafka": "0.5"}


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--data", default=str(DATA), help="folder of images")
    command.add_argument("--turns", type=int, default=9)
    options = command.parse_args()
    images = load_dataset(options.data)
    rows = [_replay(images, options.turns), _kafka(images, options.turns)]
    show("samples/s from a stream to batches", rows, options.json)


def _replay(images: Dataset, turns: int) -> dict[str, Any]:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    codec = _codec(images)
    samples = list(zip(images.train_images, images.train_labels, strict=True))

    def stream() -> float:
        source = ReplaySource(len(samples), lambda i: codec.encode(samples[i]), ReplaySettings(ENDLESS_RATE), seed=0)
        return _rate(source, codec, REPLAYED)

    def bare() -> float:
        order = np.random.RandomState(0).randint(0, len(samples), REPLAYED)
        began_s = time.perf_counter()
        for begin in range(0, REPLAYED, BATCH):
            chosen = [samples[i] for i in order[begin : begin + BATCH]]
            np.stack([image for image, _ in chosen])
            np.stack([label for _, label in chosen])
        return REPLAYED / (time.perf_counter() - began_s)

    try:
        return _row("replay", "images taken one by one", stream, bare, turns)
    finally:
        os.sched_setaffinity(0, allowed)


def _kafka(images: Dataset, turns: int) -> dict[str, Any]:
    owner = confluent_kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    (found,) = owner.list_topics(timeout=60.0).brokers.values()
    broker, codec = f"{found.host}:{found.port}", _codec(images)
    some = range(IN_TOPIC)
    payloads = [codec.encode((images.train_images[i % 1000], images.train_labels[i % 1000])) for i in some]
    KafkaWriter(broker, "images").write([StreamRecord(i, payload) for i, payload in enumerate(payloads)])

    def stream() -> float:
        return harmonic_mean(_rate(KafkaSource(broker, "images", "planner"), codec, IN_TOPIC) for _ in range(PASSES))

    def bare() -> float:
        return harmonic_mean(consumed() for _ in range(PASSES))

    def consumed() -> float:
        given = {"group.id": "bare", "auto.offset.reset": "earliest"}
        consumer = confluent_kafka.Consumer({**settings(broker, lambda error: None), **given})
        consumer.assign([confluent_kafka.TopicPartition("images", 0, 0)])
        count, began_s = 0, None
        while count < IN_TOPIC:
            messages = consumer.consume(512, 1.0)
            began_s = began_s or (time.perf_counter() if messages else None)
            count += len([message.value() for message in messages])
        assert began_s is not None, "messages came"
        rate = count / (time.perf_counter() - began_s)
        consumer.close()
        return rate

    row = _row("kafka", "confluent-kafka's consumer", stream, bare, turns)
    del owner
    return row


def _codec(images: Dataset) -> ArrayCodec:
    return ArrayCodec.of(ArraySamples(images.train_images, images.train_labels), images.classes)


def _rate(source: SampleSource, codec: ArrayCodec, count: int) -> float:
    """Samples/s from the first one that arrives to the last one in a batch."""
    with tempfile.TemporaryDirectory() as folder:
        segments = SegmentFolder(folder)
        arrivals = ArrivingSamples(source, codec, PersistingBuffer(4 * BATCH * 64, segments), 60.0, segments.set_aside)
        arrivals.prepare(0)
        taken, began_s = 0, None
        while taken < count:
            arrivals.receive(1.0)
            waiting = arrivals.statistics().buffered
            began_s = began_s or (time.perf_counter() if waiting else None)
            for _ in range(waiting // BATCH):
                codec.batch(arrivals.take(BATCH))
                arrivals.position()  # as after every step; samples taken before are given free
                taken += BATCH
        assert began_s is not None, "samples came"
        rate = taken / (time.perf_counter() - began_s)
        arrivals.stop()
        return rate


def _row(name: str, beside: str, stream: Callable[[], float], bare: Callable[[], float], turns: int) -> dict[str, Any]:
    rates = [(stream(), bare()) for _ in range(turns)]
    return {
        "source": name,
        "samples/s": Spread.of(rate for rate, _ in rates),
        "beside": beside,
        "its samples/s": Spread.of(rate for _, rate in rates),
        "ratio": Spread.of(rate / other for rate, other in rates),
        "target": TARGETS[name],
    }


if __name__ == "__main__":
    main()
