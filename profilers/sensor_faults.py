"""This module judges whether the readings of a power sensor can be believed."""

from typing import Optional, Sequence

import numpy as np

#: Equal reads, and the seconds they span, from which on a sensor counts as stuck.
REPEATS_READS = 30
REPEAT_LIMIT_S = 3.0
#: The same seconds for a value in whole watts: a steady load keeps it for longer.
WHOLE_WATTS_LIMIT_S = 30.0
#: A sensor saturates above this share of reads at the highest value, with so many distinct
#: lower values next to them.
TOP_SHARE = 0.5
BESIDE_TOP = 8


def fault(
    times_s: Sequence[float],
    values: Sequence[float],
    counts_joules: bool,
    repeat_limit_s: float = REPEAT_LIMIT_S,
    whole_watts_limit_s: float = WHOLE_WATTS_LIMIT_S,
) -> Optional[str]:
    """Why a sensor must not be used, as a text that follows its name; None without a fault.

    times_s, values: monotonic seconds of the reads, and watts, or joules where ``counts_joules``,
    (n,).
    repeat_limit_s: seconds that a sensor with a slow update may repeat one value.
    whole_watts_limit_s: the same for a value in whole watts; infinite for such meters.

    - It repeats one value in all of at least 30 reads over ``repeat_limit_s``. No load is that
      steady, and sensors resolve 40 mW or better; but it may stay within half a watt for longer.
    - It goes backwards. Used joules do not come back, so that one decrease is enough.
    - It saturates: more than half of the reads equal its highest value, with at least 8 distinct
      lower values next to them. A fluctuating load meets a ceiling from many sides; a sensor of
      whole watts on a plateau has only one or two neighbouring values, and passes.
    """
    readings = np.asarray(values, dtype=float)
    if len(readings) < 2:
        return None
    if counts_joules:
        return _repeats(times_s, readings, repeat_limit_s, "J") or _goes_backwards(readings)
    needed_s = max(whole_watts_limit_s, repeat_limit_s) if readings[0] == np.round(readings[0]) else repeat_limit_s
    return _repeats(times_s, readings, needed_s, "W") or _saturates(readings)


def _repeats(times_s: Sequence[float], values: np.ndarray, needed_s: float, unit: str) -> Optional[str]:
    spans_s = times_s[-1] - times_s[0]
    if len(values) < REPEATS_READS or spans_s < needed_s or np.any(values != values[0]):
        return None
    return "it repeats one value: %g %s in each of %d reads over %.1f s" % (values[0], unit, len(values), spans_s)


def _goes_backwards(values: np.ndarray) -> Optional[str]:
    steps = np.diff(values)
    if np.all(steps >= 0.0):
        return None
    return "it goes backwards: by %g J at once" % -steps.min()


def _saturates(values: np.ndarray) -> Optional[str]:
    top = values == values.max()
    if top.mean() <= TOP_SHARE:
        return None
    before, after = values[:-1][~top[:-1] & top[1:]], values[1:][top[:-1] & ~top[1:]]
    if len(np.unique(np.concatenate((before, after)))) < BESIDE_TOP:
        return None
    return "it saturates: %.0f %% of its reads are its highest value, %g W" % (100.0 * top.mean(), values.max())
