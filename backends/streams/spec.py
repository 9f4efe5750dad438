"""The text of ``--stream`` is parsed here: where samples come from, and how they are kept."""

import math
from typing import Any, Dict, NamedTuple, Optional

from backends.strategies import sample_streams
from backends.strategies.name_and_options import (
    count,
    name_of,
    number,
    options_of,
    positive,
    typed,
    whole_from,
    word_of,
)
from backends.streams.buffer import PERSIST, TRUNCATE
from backends.streams.rate_shape import SHAPES, RateShape
from backends.streams.replay import ReplaySettings

#: Samples in memory, before the others go to disk; 3 kB each in the paper.
MEMORY = 4096
#: Seconds without a sample after which a stream counts as ended.
PATIENCE_S = 60.0
#: Bounds of a batch that follows the measured rate.
LEAST, MOST = 1, 1024

#: Options that every source has.
_COMMON = {
    "policy": word_of((PERSIST, TRUNCATE)),
    "memory": whole_from(1),
    "patience": positive,
    "least": whole_from(1),
    "most": count,
}
#: Options by source.
_SOURCES: Dict[str, Dict[str, Any]] = {
    "replay": {
        "rates": str,
        "shape": word_of(SHAPES),
        "factor": number,
        "period": number,
        "stop": positive,
        "malformed": count,
        "at": str,
    },
    "directory": {"path": str},
    "kafka": {"brokers": str, "topic": str, "group": str},
}
#: The option that may stand without its name, as in ``replay:S1``; others than a replay need it.
_FIRST = {"replay": "rates", "directory": "path", "kafka": "brokers"}
#: Stands for the name of the device in a path or a topic.
DEVICE = "{device}"
#: The topic and the consumer group of a device, where none are named.
TOPIC = "planner-{device}"


class StreamSpec(NamedTuple):
    """The parsed text of ``--stream``.

    source: replay, directory or kafka. options: of the source, those that were given.
    policy: what happens to samples that arrive faster than they are used.
    memory: samples that are kept in memory at least, before the disk is used.
    patience_s: seconds without a sample after which the stream counts as ended.
    least, most: bounds of a batch that follows the measured rate.
    """

    source: str
    options: Dict[str, Any]
    policy: str
    memory: int
    patience_s: float
    least: int
    most: int
    text: str

    @classmethod
    def from_text(cls, text: str) -> "StreamSpec":
        """Parse "SOURCE:key=value,...". Raises ValueError naming the source, option or value."""
        source = name_of("source of a stream", text, _SOURCES)
        readers = dict(_SOURCES[source], **_COMMON)
        found = typed(text, options_of(_named(source, text), tuple(readers)), readers)
        made = cls(
            source,
            {key: value for key, value in found.items() if key in _SOURCES[source]},
            found.get("policy", PERSIST),
            found.get("memory", MEMORY),
            found.get("patience", PATIENCE_S),
            found.get("least", LEAST),
            found.get("most", MOST),
            text,
        )
        made._check()
        return made

    def as_text(self) -> str:
        """The text for files and orders."""
        return self.text

    def _check(self) -> None:
        if self.least > self.most:
            raise ValueError("%s: least is not above most, %d" % (self.text, self.most))
        if self.source == "replay":
            self.replay("", 0)
        else:
            self._check_place()

    def _check_place(self) -> None:
        option = _FIRST[self.source]
        if not self.options.get(option):
            raise ValueError("%s: name the %s, as in %s:%s=..." % (self.text, option, self.source, option))

    def place(self, device: str) -> str:
        """The path or the brokers of a device's samples."""
        named: str = self.options[_FIRST[self.source]]
        return named.replace(DEVICE, device)

    def brokers(self) -> str:
        """The brokers of Kafka, as its library takes them: separated by commas, not by slashes."""
        named: str = self.options["brokers"]
        return named.replace("/", ",")

    def topic(self, device: str) -> str:
        """The topic of a device."""
        named: str = self.options.get("topic", TOPIC)
        return named.replace(DEVICE, device)

    def group(self, device: str) -> str:
        """The consumer group of a device."""
        named: str = self.options.get("group", TOPIC)
        return named.replace(DEVICE, device)

    def named(self, device: str) -> str:
        """What a device reads, whatever is done with it: by this a measured rate is found again."""
        topic = "/" + self.topic(device) if self.source == "kafka" else ""
        return "%s:%s%s" % (self.source, self.place(device), topic)

    def batch(self, rate: float) -> int:
        """The batch that arrives in a second at this rate, within the bounds."""
        return max(self.least, min(self.most, int(rate + 0.5)))

    def replay(self, device: str, seed: int) -> ReplaySettings:
        """How fast a replay is on a device. Raises ValueError for options that no stream has."""
        given = self.options
        rate = self._rate(given.get("rates", "S1"), device, seed)
        if given.get("at", device) != device and device:
            return ReplaySettings(rate)
        shape = RateShape(
            given.get("shape", RateShape().shape),
            given.get("factor", RateShape().factor),
            given.get("period", RateShape().period_s),
        )
        try:
            shape.check()
        except ValueError as error:
            raise ValueError("%s: %s" % (self.text, error)) from None
        return ReplaySettings(rate, shape, given.get("stop", math.inf), given.get("malformed", 0))

    def _rate(self, rates: str, device: str, seed: int) -> float:
        """Samples a second of a device: drawn for its name, or the number that was given."""
        if rates in sample_streams.DISTRIBUTIONS:
            return sample_streams.draw_rate(rates, device, seed)
        by_device: Dict[str, str] = {}
        for item in rates.split("/"):
            name, is_named, value = item.rpartition("@")
            by_device[name if is_named else ""] = value
        found: Optional[float] = None
        for name, value in by_device.items():
            rate = _positive(self.text, value)
            if name == device or (not name and found is None):
                found = rate
        if found is None:
            if not device:
                return 1.0  # only the text is checked
            raise ValueError("%s: no rate for %s; add %s@RATE, or a RATE for all others" % (self.text, device, device))
        return found


def _named(source: str, text: str) -> str:
    """The text with the name of its first option, where that was left out."""
    name, colon, rest = text.partition(":")
    first = rest.split(",")[0]
    return "%s:%s=%s" % (name, _FIRST[source], rest) if colon and "=" not in first else text


def _positive(text: str, value: str) -> float:
    try:
        return positive(value)
    except ValueError:
        known = ", ".join(sample_streams.DISTRIBUTIONS)
        told = "%s: rates are one of %s, or numbers above 0, as in 30 or pc@300/tx2@38" % (text, known)
        raise ValueError(told) from None
