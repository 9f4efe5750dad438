"""This module judges whether the readings of a power sensor can be believed."""

from typing import Optional, Sequence, Tuple

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
#: More watts than any machine draws, than its board, and than one package, GPU, module or rail. The
#: difference of two reads of a counter is judged over SHORTEST_S at least.
MOST_W = {"wall": 50e3, "board": 10e3}
MOST_OF_ONE_W = 2e3
SHORTEST_S = 0.1


def fault(
    times_s: Sequence[float],
    values: Sequence[float],
    counts_joules: bool,
    repeat_limit_s: float = REPEAT_LIMIT_S,
    whole_watts_limit_s: float = WHOLE_WATTS_LIMIT_S,
    most_w: float = MOST_W["wall"],
) -> Optional[str]:
    """Why a sensor must not be used, as a text that follows its name; None without a fault.

    times_s, values: monotonic seconds of the reads, and watts, or joules where ``counts_joules``,
    (n,).
    repeat_limit_s: seconds that a sensor with a slow update may repeat one value.
    whole_watts_limit_s: the same for a value in whole watts; infinite for such meters.
    most_w: see ``most_watts``.

    - It repeats one value in all of at least 30 reads over ``repeat_limit_s``. No load is that
      steady, and sensors resolve 40 mW or better; but it may stay within half a watt for longer.
    - It goes backwards. Used joules do not come back, so that one decrease is enough; a
      counter that begins anew does so.
    - It states more watts, in one read, than anything draws that it could cover.
    - It saturates: more than half of the reads equal its highest value, with at least 8 distinct
      lower values next to them. A fluctuating load meets a ceiling from many sides; a sensor of
      whole watts on a plateau has only one or two neighbouring values, and passes.
    """
    readings = np.asarray(values, dtype=float)
    if len(readings) < 2:
        return None
    if counts_joules:
        lengths_s = np.maximum(SHORTEST_S, np.diff(times_s))
        return (
            _repeats(times_s, readings, repeat_limit_s, "J")
            or _goes_backwards(readings)
            or _is_impossible(np.diff(readings) / lengths_s, most_w)
        )
    needed_s = max(whole_watts_limit_s, repeat_limit_s) if readings[0] == np.round(readings[0]) else repeat_limit_s
    return _repeats(times_s, readings, needed_s, "W") or _saturates(readings) or _is_impossible(readings, most_w)


def most_watts(covers: str) -> float:
    """More than anything draws of which a sensor is: ``wall``, ``board``, ``gpu`` and so on."""
    return MOST_W.get(covers, MOST_OF_ONE_W)


def since_last_fall(times_s: Sequence[float], joules: Sequence[float]) -> Tuple[Sequence[float], Sequence[float]]:
    """The reads of a counter since it last went backwards; its fault was in an earlier window."""
    falls = np.flatnonzero(np.diff(joules) < 0.0)
    first = int(falls[-1]) + 1 if len(falls) else 0
    return times_s[first:], joules[first:]


def _repeats(times_s: Sequence[float], values: np.ndarray, needed_s: float, unit: str) -> Optional[str]:
    spans_s = times_s[-1] - times_s[0]
    if len(values) < REPEATS_READS or spans_s < needed_s or np.any(values != values[0]):
        return None
    return "it repeats one value: %g %s in each of %d reads over %.1f s" % (values[0], unit, len(values), spans_s)


def _goes_backwards(values: np.ndarray) -> Optional[str]:
    steps = np.diff(values)
    if np.all(steps >= 0.0):
        return None
    return "it goes backwards: by %g J at once, as after the machine was suspended" % -steps.min()


def _is_impossible(watts: np.ndarray, most_w: float) -> Optional[str]:
    return "it states %.3g W, more than any machine draws there" % watts.max() if watts.max() > most_w else None


def _saturates(values: np.ndarray) -> Optional[str]:
    top = values == values.max()
    if top.mean() <= TOP_SHARE:
        return None
    before, after = values[:-1][~top[:-1] & top[1:]], values[1:][top[:-1] & ~top[1:]]
    if len(np.unique(np.concatenate((before, after)))) < BESIDE_TOP:
        return None
    return "it saturates: %.0f %% of its reads are its highest value, %g W" % (100.0 * top.mean(), values.max())
