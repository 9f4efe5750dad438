"""Speeds of machines by their reference loops, at one time beside another. Pure."""

import math
from collections.abc import Iterable

from profilers.machine_speed import INTERRUPTED, LOOP, uninterrupted_s
from profilers.records.readings import MachineSpeed
from profilers.stats import stdev

#: From how many times the lower quartile on rounds do not count, by loop: of those whose rounds,
#: where they are kept, are counted together. Most fleets in benchmarks/audits have the former one.
FORMERLY_INTERRUPTED = 1.5
_LIMITS = {4: FORMERLY_INTERRUPTED, LOOP: INTERRUPTED}


def joined_speed(speeds: Iterable[MachineSpeed | None]) -> MachineSpeed | None:
    """The speed over several times, by all their rounds; None without one.

    Of times whose rounds are not kept, and of older loops, each counts as many times as it had
    rounds. Of several loops the newest counts. Shares of lost time are means over the times that
    tell them.
    """
    known = [each for each in speeds if each is not None and each.loop_s is not None]
    newest = max((each.loop for each in known), default=0)
    known = [each for each in known if each.loop == newest]
    taken_s = [seconds for each in known for seconds in _rounds_s(each)]
    if not taken_s:
        return None
    stdev_s = stdev(taken_s) if len(taken_s) > 1 else None
    stolen, throttled = ([getattr(each, name) for each in known] for name in ("stolen_share", "throttled_share"))
    loop_s = uninterrupted_s(taken_s, _LIMITS.get(newest, FORMERLY_INTERRUPTED))
    return MachineSpeed(loop_s, stdev_s, len(taken_s), _mean(stolen), _mean(throttled), newest)


def _rounds_s(speed: MachineSpeed) -> tuple[float, ...]:
    kept = speed.taken_s if speed.loop in _LIMITS else ()
    return kept or speed.rounds * (speed.loop_s or 0.0,)


def slowdown(now: MachineSpeed | None, before: MachineSpeed | None) -> float | None:
    """How many times as long the reference loop takes as before.

    None where either is unknown, or both are of different loops.
    """
    if now is None or before is None or now.loop != before.loop or not now.loop_s or not before.loop_s:
        return None
    return now.loop_s / before.loop_s


def _mean(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return math.fsum(known) / len(known) if known else None
