"""Samples come from a topic of a real broker, the one that is built into the client library."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from backends.streams import kafka_source
from backends.streams.kafka_source import KafkaSource, KafkaWriter
from backends.streams.source import StreamRecord
from tests.kafka_broker import Broker
from tests.running import HANG_S, until

confluent_kafka = pytest.importorskip("confluent_kafka")


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """The address of a broker."""
    with Broker() as found:
        yield found.address


def numbered(*offsets: int) -> list[StreamRecord]:
    return [StreamRecord(offset, b"sample %d" % offset) for offset in offsets]


def read(source: KafkaSource, count: int) -> list[StreamRecord]:
    """So many samples; connections that fail meanwhile are made again."""
    found: list[StreamRecord] = []
    trouble: list[str] = []

    def are_there() -> bool:
        try:
            found.extend(source.read(0.1) or [])
        except OSError as error:
            trouble[:] = [str(error)]
        return len(found) >= count

    until(are_there, lambda: f"only {found} came: {trouble}")
    return found


def begun(broker: str, topic: str, offset: int = 0, group: str = "planner") -> KafkaSource:
    source = KafkaSource(broker, topic, group)
    source.begin(offset)
    return source


def committed(broker: str, topic: str, group: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker, "group.id": group, "log_level": 0})
    try:
        (place,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], timeout=60.0)
        return place.offset
    finally:
        consumer.close()


def test_samples_come_in_order_from_any_offset_on_to_the_end(broker: str) -> None:
    writer = KafkaWriter(broker, "ordered")
    assert writer.next_offset() == 0
    writer.write(numbered(*range(6)))
    assert writer.next_offset() == 6
    source = begun(broker, "ordered", 2)
    assert read(source, 4) == numbered(2, 3, 4, 5)
    writer.write(numbered(6))
    assert read(source, 1) == numbered(6)
    writer.end(7)
    until(lambda: source.read(0.1) is None, lambda: "it does not end")
    source.close()


def test_what_a_checkpoint_contains_is_committed_for_the_group(broker: str) -> None:
    KafkaWriter(broker, "committed").write(numbered(*range(6)))
    source = begun(broker, "committed", group="g")
    read(source, 6)
    assert committed(broker, "committed", "g") < 0
    source.commit(4)
    until(lambda: committed(broker, "committed", "g") == 4, lambda: "it is not committed")
    source.close()
    again = begun(broker, "committed", 5, group="g")
    until(lambda: committed(broker, "committed", "g") == 5, lambda: "what it begins with is not committed")
    assert read(again, 1) == numbered(5)
    again.close()


def test_who_begins_at_the_end_gets_what_is_new_and_commits_nothing(broker: str) -> None:
    writer = KafkaWriter(broker, "watched")
    writer.write(numbered(0, 1))
    source = KafkaSource(broker, "watched", "watchers")
    source.begin_at_end()
    found: list[StreamRecord] = []

    def arrives() -> bool:
        """Until the source knows where the end is, what is written is before it."""
        writer.write(numbered(2))
        found.extend(source.read(0.1) or [])
        return bool(found)

    until(arrives, lambda: "nothing arrives")
    assert found[0].offset >= 2 and committed(broker, "watched", "watchers") < 0
    source.close()


def trouble_of(source: KafkaSource) -> str:
    """What it says of a broker that is gone."""
    said: list[str] = []

    def is_told() -> bool:
        try:
            assert not source.read(0.1)
        except OSError as error:
            said.append(str(error))
        return bool(said)

    until(is_told, lambda: "it does not notice")
    return said[0]


def test_a_broker_that_is_gone_is_told_and_read_again_when_it_is_back() -> None:
    with Broker() as broker:
        writer = KafkaWriter(broker.address, "images", deliver_s=HANG_S)
        source = begun(broker.address, "images")
        writer.write(numbered(0, 1))
        assert read(source, 2) == numbered(0, 1)
        broker.go()
        assert f"Kafka at {broker.address}: " in trouble_of(source)
        broker.come_back()
        writer.write(numbered(2, 3))
        assert read(source, 2) == numbered(2, 3)
        source.close()


def spread(broker: str, topic: str, partitions: Iterable[int]) -> None:
    """Samples in these partitions, as writers do that know nothing of this program."""
    producer = confluent_kafka.Producer({"bootstrap.servers": broker, "log_level": 0})
    for partition in partitions:
        producer.produce(topic, b"sample", partition=partition)
    assert producer.flush(HANG_S) == 0


def test_a_topic_with_samples_in_several_partitions_is_refused_with_their_number(broker: str) -> None:
    spread(broker, "several", range(4))
    with pytest.raises(
        ValueError, match=r"topic several has 4 partitions, and samples in partition 1: .*--partitions 1"
    ):
        KafkaSource(broker, "several", "planner").require_reached()


def test_empty_partitions_do_no_harm(broker: str) -> None:
    spread(broker, "empty", [0])
    KafkaSource(broker, "empty", "planner").require_reached()
    source = begun(broker, "empty")
    assert [record.offset for record in read(source, 1)] == [0]
    source.close()


@pytest.mark.parametrize("earlier", [True, False])
def test_a_sample_in_another_partition_ends_the_reading(broker: str, earlier: bool) -> None:
    topic = f"later-{earlier}"
    spread(broker, topic, [2] if earlier else [0])
    source = begun(broker, topic)
    spread(broker, topic, [2])
    found: list[str] = []

    def is_told() -> bool:
        try:
            source.read(0.1)
        except ValueError as error:
            found.append(str(error))
        return bool(found)

    until(is_told, lambda: "it reads on")
    assert "has 4 partitions, and samples in partition 2" in found[0]
    source.close()


def test_partitions_that_are_added_during_a_run_are_looked_into(broker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_source, "LOOK_S", 0.0)
    KafkaWriter(broker, "growing").write(numbered(0))
    source = begun(broker, "growing")
    known = source._consumer

    class First:
        """The consumer as it was while the topic had one partition."""

        def list_topics(self, topic: str, timeout: float) -> Any:
            found = known.list_topics(topic, timeout)
            found.topics[topic].partitions = {0: found.topics[topic].partitions[0]}
            return found

        def __getattr__(self, name: str) -> Any:
            return getattr(known, name)

    source._consumer = First()
    spread(broker, "growing", [3])
    assert read(source, 1) == numbered(0)
    source._consumer = known
    with pytest.raises(ValueError, match="has 4 partitions, and samples in partition 3"):
        read(source, 1)
    source.close()


@pytest.mark.parametrize("offset", [100, 4])
def test_an_offset_that_the_topic_does_not_have_is_refused(broker: str, offset: int) -> None:
    topic = f"short-{offset}"
    KafkaWriter(broker, topic).write(numbered(0, 1, 2))
    source = begun(broker, topic, offset)
    with pytest.raises(ValueError, match=f"topic {topic} no longer has the samples that come next"):
        read(source, 1)
    source.close()


def test_a_run_goes_on_at_the_end_of_a_topic(broker: str) -> None:
    writer = KafkaWriter(broker, "end")
    writer.write(numbered(0, 1, 2))
    source = begun(broker, "end", 3)
    assert source.read(0.5) == []
    writer.write(numbered(3))
    assert read(source, 1) == numbered(3)
    source.close()


def test_a_topic_that_is_made_by_its_first_sample_is_read(broker: str) -> None:
    source = begun(broker, "later")
    KafkaWriter(broker, "later").write(numbered(0, 1))
    assert read(source, 2) == numbered(0, 1)
    source.close()


class Message(NamedTuple):
    """As the client library gives one."""

    number: int

    def error(self) -> None:
        return None

    def value(self) -> bytes:
        return b"sample %d" % self.number

    def offset(self) -> int:
        return self.number


def test_a_topic_may_leave_numbers_out() -> None:
    source = KafkaSource("pc:9092", "topic", "group")
    assert source._records([Message(0), Message(2), Message(3)]) == numbered(0, 2, 3)
    assert source._records([Message(5), Message(6)]) == numbered(5, 6)
    assert source._records([]) == []


def test_samples_that_no_broker_takes_are_an_error() -> None:
    writer = KafkaWriter("127.0.0.1:1", "topic", deliver_s=0.05)
    with pytest.raises(OSError, match="Kafka at 127.0.0.1:1"):
        writer.write(numbered(0))


def test_a_device_without_the_library_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(kafka_source.importlib, "import_module", missing)
    with pytest.raises(ValueError, match="pip install confluent-kafka"):
        KafkaSource("pc:9092", "topic", "group")
