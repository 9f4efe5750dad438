"""Speeds of machines by their reference loops, at one time beside another. Pure."""

import math
from collections.abc import Iterable

from profilers.records import MachineSpeed


def mean_speed(speeds: Iterable[MachineSpeed | None]) -> MachineSpeed | None:
    """The speed over several times, each of which counts by its rounds; None without a round.

    Of several loops the newest counts.
    Shares of lost time are means over the times that tell them.
    """
    known = [each for each in speeds if each is not None and each.loop_s is not None]
    newest = max((each.loop for each in known), default=0)
    known = [each for each in known if each.loop == newest]
    rounds = sum(each.rounds for each in known)
    if not rounds:
        return None
    loop_s = math.fsum(each.rounds * _loop_s(each) for each in known) / rounds
    within = math.fsum((each.rounds - 1) * (each.stdev_s or 0.0) ** 2 for each in known)
    among = math.fsum(each.rounds * (_loop_s(each) - loop_s) ** 2 for each in known)
    stdev_s = math.sqrt((within + among) / (rounds - 1)) if rounds > 1 else None
    stolen, throttled = ([getattr(each, name) for each in known] for name in ("stolen_share", "throttled_share"))
    return MachineSpeed(loop_s, stdev_s, rounds, _mean(stolen), _mean(throttled), newest)


def slowdown(now: MachineSpeed | None, before: MachineSpeed | None) -> float | None:
    """How many times as long the reference loop takes as before.

    None where either is unknown, or both are of different loops.
    """
    if now is None or before is None or now.loop != before.loop or not now.loop_s or not before.loop_s:
        return None
    return now.loop_s / before.loop_s


def _loop_s(speed: MachineSpeed) -> float:
    return speed.loop_s or 0.0


def _mean(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return math.fsum(known) / len(known) if known else None
