"""A producer replays a data set to devices: into directories or topics."""

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from backends.data.dataset import Dataset, as_shipped, shards
from backends.data.loader import ArraySamples
from backends.streams.directory import DirectoryWriter
from backends.streams.kafka_source import KafkaWriter
from backends.streams.replay import ReplaySource
from backends.streams.sample_codec import ArrayCodec
from backends.streams.spec import StreamSpec
from planner.errors import PlanError, RunError

#: Longest pause between looks whether the producer is to end.
TICK_S = 0.2


class ProduceRequest(NamedTuple):
    """What is produced.

    to: where samples go, the text of ``planner recommend --stream``.
    rates: as in ``replay:RATES,...``, with its other options.
    devices: their names, for which rates are drawn; each gets its own part of the data.
    limit: samples for each device after which its stream ends; 0 for none.
    """

    to: str
    rates: str
    devices: Sequence[str]
    seed: int = 0
    limit: int = 0


def replays(data: Dataset, request: ProduceRequest) -> dict[str, ReplaySource]:
    """The replay of each device: its samples, in its order, at its rate.

    Raises PlanError for rates that no stream has.
    """
    try:
        spec = StreamSpec.from_text(f"replay:{request.rates}")
        settings = {name: spec.replay(name, request.seed) for name in request.devices}
    except ValueError as error:
        raise PlanError(f"--rates {request.rates}: {error}") from None
    images = as_shipped(data.train_images)
    codec = ArrayCodec.of(ArraySamples(images[:1], data.train_labels[:1]))
    parts = shards(len(images), [1.0] * len(request.devices), request.seed)

    def replay(place: int, name: str) -> ReplaySource:
        own = parts[place]

        def encode(position: int) -> bytes:
            return codec.encode((images[own[position]], data.train_labels[own[position]]))

        return ReplaySource(len(own), encode, settings[name], request.seed * 1009 + place)

    return {name: replay(place, name) for place, name in enumerate(request.devices)}


def target(request: ProduceRequest) -> StreamSpec:
    """Where samples go. Raises PlanError for what no producer fills."""
    try:
        spec = StreamSpec.from_text(request.to)
    except ValueError as error:
        raise PlanError(f"{request.to}: {error}") from None
    if spec.source == "replay":
        raise PlanError(f"{request.to}: a replay needs no producer; give directory:... or kafka:...")
    places = [spec.place(name) for name in request.devices]
    if spec.source == "directory" and len({*places}) < len(places):
        raise PlanError(f"{request.to}: {len(places)} devices need a directory each; put {{device}} into the path")
    if spec.source == "kafka" and len({spec.topic(name) for name in request.devices}) < len(places):
        raise PlanError(f"{request.to}: {len(places)} devices need a topic each; put {{device}} into its name")
    return spec


def writer_of(spec: StreamSpec, device: str) -> DirectoryWriter | KafkaWriter:
    """What takes the samples of a device. Raises OSError, and ValueError without a library."""
    if spec.source == "kafka":
        return KafkaWriter(spec.brokers(), spec.topic(device))
    return DirectoryWriter(spec.place(device))


def produce(data: Dataset, request: ProduceRequest, stop: threading.Event, on_note: Callable[[str], None]) -> int:
    """Produce until all streams have ended or ``stop``; returns the samples that were written.

    Raises PlannerError where nothing can be written, for example on a full disk.
    """
    spec = target(request)
    sources = replays(data, request)
    for name, source in sources.items():
        on_note(f"{name}: {source.settings.rate:.4g} samples/s to {spec.place(name)}")
    written = dict.fromkeys(request.devices, 0)
    failures: list[str] = []

    def fill_one(name: str) -> None:
        try:
            written[name] = fill(writer_of(spec, name), sources[name], request.limit, stop)
        except (OSError, ValueError) as error:
            failures.append(f"{name}: {error}")
            stop.set()

    threads = [threading.Thread(target=fill_one, args=(name,), daemon=True) for name in request.devices]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(TICK_S)
    if failures:
        raise RunError(f"{failures[0]}; what was written is whole, and the same command goes on behind it")
    return sum(written.values())


def fill(writer: DirectoryWriter | KafkaWriter, source: ReplaySource, limit: int, stop: threading.Event) -> int:
    """Write samples behind those that are there; returns how many.

    Raises OSError where a disk takes no more, or a broker none.
    """
    offset = writer.next_offset()
    source.begin(offset)
    written = 0
    while not stop.is_set() and not (limit and written >= limit):
        records = source.read(TICK_S)
        if records is None:
            writer.end(offset)
            break
        records = records[: limit - written] if limit else records
        if records:
            writer.write(records)
            written += len(records)
            offset = records[-1].offset + 1
    if limit and written >= limit:
        writer.end(offset)
    return written
