"""Whether a power sensor's series can be believed. Pure."""

from typing import Optional, Sequence

import numpy as np

#: Reads that must all say the same, and the seconds they span, before a sensor counts as one that repeats itself.
REPEATS_READS = 30
REPEATS_S = 3.0
#: The same for a value in whole watts, behind which a steady load may well hide for longer. Of a meter that tells
#: nothing else it may hide for ever.
WHOLE_WATTS_S = 30.0
#: Share of the reads at the highest value, and distinct lower values read right beside it, of one that saturates.
TOP_SHARE = 0.5
BESIDE_TOP = 8


def fault(
    times_s: Sequence[float],
    values: Sequence[float],
    counts_joules: bool,
    patience_s: float = REPEATS_S,
    whole_watts_s: float = WHOLE_WATTS_S,
) -> Optional[str]:
    """Why a sensor must not be used, in words that follow "it"; None where nothing speaks against it.

    times_s, values: of its reads, (n,), monotonic seconds and watts, or joules so far where ``counts_joules``;
    patience_s, whole_watts_s: what takes the place of the 3 s and the 30 s below for a sensor that is known to renew
    its value seldom, or to resolve a watt only.

    - It repeats one value: in all of at least 30 reads over at least 3 s. No load is that steady, and
      the monitors at hand resolve 40 mW or better. A value in whole watts says less: a steady load may stay within
      half a watt: there it takes 30 s, and of a meter that may resolve no more (a wall plug, a log) no time is enough:
      that one shows by saying the same at rest and under load. A counter that stands still for 3 s is broken at any
      resolution.
    - It goes backwards: joules that were used do not come back, so that one decrease is enough.
    - It saturates: more than half of the reads are exactly its highest value, with at least 8 distinct lower ones right
      before or after it. A load that fluctuates meets a ceiling from many sides; a sensor of whole watts on a
      plateau leaves its highest value to one or two others only, and passes.
    """
    known = np.asarray(values, dtype=float)
    if len(known) < 2:
        return None
    if counts_joules:
        return _repeats(times_s, known, patience_s, "J") or _goes_backwards(known)
    needed_s = max(whole_watts_s, patience_s) if known[0] == np.round(known[0]) else patience_s
    return _repeats(times_s, known, needed_s, "W") or _saturates(known)


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
