"""A field of a record has a range, which is checked when the record comes from another machine.

A field is known by its name, for a name means the same in all records (``profilers.records``,
``orders``, ``events``, ``frames``, plans). A list or an object of numbers has the range of its
field. All other numbers are finite, and whole ones have 64 bits.
"""

import math
from typing import Dict, NamedTuple, Tuple

#: Beyond all seconds, joules and bytes that there are; products of two are finite.
_MOST = 1e15
_WORD = 2**63 - 1


class NumberRange(NamedTuple):
    """From ``low`` to ``high``; open: without ``low`` itself."""

    low: float
    high: float
    open: bool = False

    def holds(self, value: float) -> bool:
        """Whether a number is in it; NaN is in none but ``ANY``."""
        return self == ANY or self.low <= value <= self.high and not (self.open and value == self.low)

    @property
    def text(self) -> str:
        """For messages, after "expected a number"."""
        low = "" if self.low == -self.high else " above %g" % self.low if self.open else " from %g on" % self.low
        if self.high >= _MOST:
            return low or " that is finite"
        return low + (" to %g" % self.high if self.low == -self.high or self.open else ", at most %g" % self.high)


FINITE, COUNT = NumberRange(-1e300, 1e300), NumberRange(0, _WORD)
_WHOLE = NumberRange(-_WORD, _WORD)
_AMOUNT, _POSITIVE, _SHARE = NumberRange(0, _MOST), NumberRange(0, _MOST, True), NumberRange(0, 1)
_FROM_ONE = NumberRange(1, _WORD)
#: What a loss may be: one that is not finite is what ends a run.
ANY = NumberRange(-math.inf, math.inf)

#: By the end of a name.
_ENDINGS: Tuple[Tuple[str, NumberRange], ...] = (
    ("_s", _AMOUNT),
    ("_s_per_step", _AMOUNT),
    ("_w", _AMOUNT),
    ("_j", _AMOUNT),
    ("_bytes", _AMOUNT),
    ("_cores", NumberRange(0, 1e6)),
    ("_share", _AMOUNT),
    ("_uncertainty", _AMOUNT),
)
#: By the whole name.
_NAMES: Dict[str, NumberRange] = {
    "after": COUNT,
    "arrived": COUNT,
    "batch": _FROM_ONE,
    "beta1": _SHARE,
    "beta2": _SHARE,
    "buffered": COUNT,
    "bytes": COUNT,
    "classes": _FROM_ONE,
    "clip_norm": _POSITIVE,
    "connections": _FROM_ONE,
    "cores": NumberRange(0, 1e6, True),
    "count": COUNT,
    "counts": COUNT,
    "cycle_s": _POSITIVE,
    "delay": COUNT,
    "done": COUNT,
    "dropped": COUNT,
    "duration_s": _AMOUNT,
    "epoch": COUNT,
    "epsilon": _AMOUNT,
    "every": COUNT,
    "gain": _POSITIVE,
    "id": COUNT,
    "idle_watts": _AMOUNT,
    "input_shape": _FROM_ONE,
    "interval": _AMOUNT,
    "labels": COUNT,
    "layers": COUNT,
    "malformed": COUNT,
    "max_watts": _AMOUNT,
    "member": COUNT,
    "micro_batch": COUNT,
    "mode": NumberRange(0, 0o7777),
    "momentum": _SHARE,
    "network_bytes": _AMOUNT,
    "offset": COUNT,
    "parameters": COUNT,
    "peak_buffered": COUNT,
    "port": NumberRange(0, 65535),
    "ports": NumberRange(0, 65535),
    "power_w": _AMOUNT,
    "rate": _AMOUNT,
    "rate_bytes_per_s": _POSITIVE,
    "ready": _AMOUNT,
    "received": COUNT,
    "repeats": _AMOUNT,
    "requested_batch": _FROM_ONE,
    "samples": COUNT,
    "saved_offset": COUNT,
    "scale": _POSITIVE,
    "seconds": _AMOUNT,
    "shape": COUNT,
    "shared": COUNT,
    "shared_with": COUNT,
    "shares": _AMOUNT,
    "size": COUNT,
    "sizes": COUNT,
    "slowdown": NumberRange(1, 1e9),
    "start": COUNT,
    "stdev": _AMOUNT,
    "step": COUNT,
    "steps": _AMOUNT,
    "steps_planned": _AMOUNT,
    "stored": COUNT,
    "threads": COUNT,
    "total": COUNT,
    "turns": COUNT,
    "usable_cores": NumberRange(0, 1e6, True),
    "used": COUNT,
    "values": _AMOUNT,
    "waiting": COUNT,
    "warmup": _AMOUNT,
    "weight_decay": _AMOUNT,
    "weights": _AMOUNT,
    "loss": ANY,
    "metrics": ANY,
}


#: By the names of a record and its field, where they mean something else there.
_OF_RECORDS: Dict[Tuple[str, str], NumberRange] = {
    ("PeerMessage", "batch"): COUNT,  # 0 where it does not matter
    ("PeerStepDone", "batch"): COUNT,
    ("PlannedStream", "buffered"): _AMOUNT,
    ("StreamStatistics", "batch"): COUNT,  # 0 before the first step
    ("Window", "seconds"): FINITE,  # means of counters, such as temperatures below 0
}


def range_of(record: str, field: str, whole: bool) -> NumberRange:
    """What the numbers of a record's field may be; whole: whether they are whole ones."""
    found = _OF_RECORDS.get((record, field)) or _NAMES.get(field)
    if found is None:
        found = next((each for ending, each in _ENDINGS if field.endswith(ending)), _WHOLE if whole else FINITE)
    return found
