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
#: By the whole name: the names of each range.
_NAMES: Tuple[Tuple[NumberRange, str], ...] = (
    (
        COUNT,
        "after arrived buffered bytes count counts delay done dropped epoch every frozen id labels layers malformed "
        "member micro_batch offset parameters peak_buffered received samples saved_offset shape shared "
        "shared_with size sizes start step stored threads total turns used waiting",
    ),
    (_FROM_ONE, "batch classes connections input_shape requested_batch"),
    (_SHARE, "beta1 beta2 momentum"),
    (_POSITIVE, "clip_norm cycle_s gain rate_bytes_per_s scale"),
    (NumberRange(0, 1e6, True), "cores usable_cores"),
    (
        _AMOUNT,
        "epsilon idle_watts interval max_watts rate ready repeats seconds shares stdev steps steps_planned "
        "values warmup weight_decay weights",
    ),
    (NumberRange(0, 0o7777), "mode"),
    (NumberRange(0, 65535), "port ports"),
    (NumberRange(1, 1e9), "slowdown"),
    (ANY, "loss metrics"),
)
#: By the names of a record and its field, where they mean something else there.
_OF_RECORDS: Dict[Tuple[str, str], NumberRange] = {
    ("PeerMessage", "batch"): COUNT,  # 0 where it does not matter
    ("PeerStepDone", "batch"): COUNT,
    ("PlannedStream", "buffered"): _AMOUNT,
    ("StreamStatistics", "batch"): COUNT,  # 0 before the first step
    ("Window", "seconds"): FINITE,  # means of counters, such as temperatures below 0
}


_BY_NAME: Dict[str, NumberRange] = {name: each for each, names in _NAMES for name in names.split()}


def range_of(record: str, field: str, whole: bool) -> NumberRange:
    """What the numbers of a record's field may be; whole: whether they are whole ones."""
    found = _OF_RECORDS.get((record, field)) or _BY_NAME.get(field)
    if found is None:
        found = next((each for ending, each in _ENDINGS if field.endswith(ending)), _WHOLE if whole else FINITE)
    return found
