"""A topic of Apache Kafka for each device, through confluent-kafka, which the device must have.

The offset of a message is that of its sample; a message without content ends the stream. The run's
checkpoint decides where a stream goes on. The consumer group is told what that contains, so that
Kafka's own tools show how far a device is.
"""

import contextlib
import functools
import importlib
import threading
import time
from typing import Any, Callable, Iterable, List, Optional

from backends.streams.source import SampleSource, StreamRecord

#: Most messages that are taken at once.
MOST_AT_ONCE = 512
#: Longest wait for a broker before a run, in seconds.
REACHED_S = 15.0
#: Seconds between looks whether other partitions hold samples, and the longest wait for one.
LOOK_S = 5.0
LOOK_LIMIT_S = 1.0
MISSING = "--stream kafka needs confluent-kafka on this device: python3 -m pip install confluent-kafka"
#: A topic has one partition, as in the paper; others must be empty.
PARTITION = 0


#: Makes a record of its two fields without a call of Python: there may be a million in a second.
_record: Callable[[Iterable[Any]], StreamRecord] = functools.partial(tuple.__new__, StreamRecord)


def library() -> Any:
    """The module confluent_kafka. Raises ValueError with the remedy where it is missing."""
    try:
        return importlib.import_module("confluent_kafka")
    except ImportError:
        raise ValueError(MISSING) from None


def settings(brokers: str, on_error: Any) -> Any:
    """What producers and consumers have in common; on_error: is given errors of connections."""
    return {"bootstrap.servers": brokers, "error_cb": on_error, "log_level": 0}


class KafkaSource(SampleSource):
    """The messages of a topic. The client library finds brokers that are gone again by itself.

    brokers: HOST:PORT,...
    """

    def __init__(self, brokers: str, topic: str, group: str) -> None:
        self._kafka = library()
        self._brokers = brokers
        self._topic = topic
        self._group = group
        self.name = "Kafka at %s, topic %s" % (brokers, topic)
        self._trouble = ""
        self._ended = False
        self._next_look_s = 0.0
        self._consumer: Any = None
        self._reading = threading.Lock()  # while messages are taken, it must not be closed

    def require_reached(self) -> None:
        """A topic that is missing may still be made: its first sample makes it.

        Raises ValueError where other partitions than the first hold samples.
        """
        consumer = self._kafka.Consumer(dict(settings(self._brokers, self._on_error), **{"group.id": self._group}))
        try:
            self._require_alone(consumer, REACHED_S)
        except self._kafka.KafkaException as error:
            raise OSError("Kafka at %s: %s" % (self._brokers, error)) from error
        finally:
            consumer.close()

    def _require_alone(self, consumer: Any, limit_s: float) -> None:
        """Raises ValueError where another partition holds samples, KafkaException for no answer."""
        partitions = consumer.list_topics(self._topic, limit_s).topics[self._topic].partitions
        for other in sorted(set(partitions) - {PARTITION}):
            low, high = consumer.get_watermark_offsets(self._place(0, other), timeout=limit_s)
            if high > low:
                raise ValueError(
                    "%s has %d partitions, and samples in partition %d: a device reads one partition only; "
                    "make the topic with --partitions 1, or write all samples to partition %d"
                    % (self.name, len(partitions), other, PARTITION)
                )

    def begin(self, offset: int) -> None:
        self._assign(offset or self._kafka.OFFSET_BEGINNING)
        if offset:
            self.commit(offset)

    def begin_at_end(self) -> None:
        self._assign(self._kafka.OFFSET_END)

    def _assign(self, offset: int) -> None:
        """Read the topic from an offset on, and no other samples where it does not have that."""
        given = {
            "group.id": self._group,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "allow.auto.create.topics": True,
        }
        self._consumer = self._kafka.Consumer(dict(settings(self._brokers, self._on_error), **given))
        self._consumer.assign([self._place(offset)])

    def _place(self, offset: int, partition: int = PARTITION) -> Any:
        return self._kafka.TopicPartition(self._topic, partition, offset)

    def _on_error(self, error: Any) -> None:
        self._trouble = "Kafka at %s: %s" % (self._brokers, error.str())

    def read(self, wait_s: float) -> Optional[List[StreamRecord]]:
        if self._ended:
            return None
        with self._reading:
            if self._consumer is None:
                return []
            self._look()
            try:
                messages = self._consumer.consume(MOST_AT_ONCE, wait_s)
            except self._kafka.KafkaException as error:
                raise OSError("Kafka at %s: %s" % (self._brokers, error)) from error
        found = self._records(messages)
        if not found and self._trouble and not self._ended:
            trouble, self._trouble = self._trouble, ""
            raise OSError(trouble)
        return found

    def _look(self) -> None:
        """See now and then whether another partition, perhaps added meanwhile, holds samples."""
        if time.monotonic() >= self._next_look_s:
            with contextlib.suppress(self._kafka.KafkaException):  # reading tells of a broker that is gone
                self._require_alone(self._consumer, LOOK_LIMIT_S)
            self._next_look_s = time.monotonic() + LOOK_S

    def _records(self, messages: List[Any]) -> List[StreamRecord]:
        """The samples among messages, up to the end of the stream."""
        whole = [message for message in messages if message.error() is None]
        for error in (message.error() for message in messages if message.error() is not None):
            if error.code() == self._kafka.KafkaError._AUTO_OFFSET_RESET:
                raise ValueError(
                    "%s no longer has the samples that come next (%s): it was made anew, or has deleted them; "
                    "train without --resume, or from another topic" % (self.name, error.str())
                )
            self._on_error(error)
        payloads = [message.value() for message in whole]
        if not all(payloads):
            self._ended = True
            payloads = payloads[: [bool(payload) for payload in payloads].index(False)]
        return list(map(_record, zip(_offsets(whole), payloads)))

    def commit(self, offset: int) -> None:
        consumer = self._consumer
        if consumer is not None:
            with contextlib.suppress(self._kafka.KafkaException, RuntimeError):  # the next one tells more
                consumer.commit(offsets=[self._place(offset)], asynchronous=True)

    def close(self) -> None:
        with self._reading:
            consumer, self._consumer = self._consumer, None
            if consumer is not None:
                consumer.close()


def _offsets(messages: List[Any]) -> Iterable[int]:
    """Of messages in order. There are gaps where a topic was compacted, for example."""
    if not messages:
        return ()
    first, behind = messages[0].offset(), messages[-1].offset() + 1
    return range(first, behind) if behind - first == len(messages) else [each.offset() for each in messages]


class KafkaWriter:
    """Sends samples to a topic. Raises OSError where they are not delivered."""

    def __init__(self, brokers: str, topic: str, deliver_s: float = 30.0) -> None:
        self._kafka = library()
        self._brokers = brokers
        self._topic = topic
        self._deliver_s = deliver_s
        self._failure = ""
        self._trouble = ""
        given = {"enable.idempotence": True, "message.timeout.ms": int(1000 * deliver_s)}
        self._producer = self._kafka.Producer(dict(settings(brokers, self._on_error), **given))

    def _on_error(self, error: Any) -> None:
        self._trouble = error.str()

    def next_offset(self) -> int:
        """Behind the samples that the topic has."""
        consumer = self._kafka.Consumer(dict(settings(self._brokers, self._on_error), **{"group.id": "planner"}))
        try:
            _, high = consumer.get_watermark_offsets(
                self._kafka.TopicPartition(self._topic, PARTITION), timeout=self._deliver_s
            )
        except self._kafka.KafkaException as error:
            codes = self._kafka.KafkaError
            if error.args[0].code() in (codes.UNKNOWN_TOPIC_OR_PART, codes._UNKNOWN_PARTITION, codes._UNKNOWN_TOPIC):
                return 0  # the first sample makes the topic
            raise OSError("Kafka at %s: %s" % (self._brokers, self._trouble or error)) from error
        finally:
            consumer.close()
        return max(0, int(high))

    def write(self, records: List[StreamRecord]) -> None:
        """Send samples, and return when all are delivered."""
        for record in records:
            self._send(record.payload)
        self._deliver()

    def end(self, offset: int) -> None:
        """Say that no more samples will come."""
        self._send(b"")
        self._deliver()

    def _send(self, payload: bytes) -> None:
        while True:
            try:
                self._producer.produce(self._topic, payload, partition=PARTITION, on_delivery=self._on_delivery)
                return
            except BufferError:
                self._producer.poll(0.1)

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self._failure = self._failure or error.str()

    def _deliver(self) -> None:
        left = self._producer.flush(2.0 * self._deliver_s)
        if left or self._failure:
            reason = self._failure or "%d samples are not delivered" % left
            raise OSError("Kafka at %s: %s" % (self._brokers, reason))
