"""Spinning threads show how many cores a process really gets.

Its affinity and its quotas may promise more: a virtual machine is not told of its host's limits.
"""

import hashlib
import math
import threading
import time
from typing import Callable, List, NamedTuple, Optional

from profilers import cores
from profilers.records.device import SpunCores

#: Seconds that one thread spins, and that all do: several periods of a quota, of 0.1 s by default.
ONE_S, EVERY_S = 0.25, 0.75
#: The share of the cores promised below which the measured ones count: less than the noise of
#: other work on a machine that is at rest.
NOTICEABLE = 0.9
#: What a thread hashes at a time, without Python's lock: for a moment, below any period of a quota.
BLOCK = bytes(1 << 17)
#: Shortest pause, in seconds without a processor, and as a share of a typical one: shorter ones are
#: interruptions by other threads. The fewest pauses that tell a period.
PAUSE_S, PAUSE_SHARE, FEWEST_PAUSES = 0.0003, 0.5, 5

_last: Optional[SpunCores] = None


def measure(usable_cores: Optional[float] = None) -> SpunCores:
    """Spin with a thread for every usable core, then with one; this process remembers it."""
    global _last  # an agent measures once, for all that it profiles later
    read = cores.usable_cores() if usable_cores is None else usable_cores
    threads = max(1, math.ceil(read))
    every = spin(threads, EVERY_S)
    one = every if threads == 1 else spin(1, ONE_S)
    _last = SpunCores(one.cores, every.cores, threads, every.period_s)
    return _last


def available_cores() -> float:
    """The cores that count: the usable ones, or the measured ones where these are fewer."""
    return fewer(cores.usable_cores(), _last)


def fewer(usable_cores: float, spun: Optional[SpunCores]) -> float:
    """The measured cores where they are noticeably fewer than the usable ones, else these."""
    return usable_cores if spun is None or spun.every >= NOTICEABLE * usable_cores else spun.every


class Pause(NamedTuple):
    """Seconds without a processor, and when they ended."""

    end_s: float
    seconds: float


class Spin(NamedTuple):
    """Cores that threads got, and as in ``SpunCores`` the period of the pauses of one of them."""

    cores: float
    period_s: Optional[float]


def spin(threads: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> Spin:
    """Have so many threads spin: cores are their processor seconds over seconds."""
    begin = threading.Barrier(threads)
    got: List[float] = []
    pauses: List[List[Pause]] = []

    def run() -> None:
        found: List[Pause] = []
        begin.wait()
        began_s, before_s = now_s, cpu_s = clock(), cores.thread_cpu_s()
        while now_s - began_s < seconds:
            hashlib.sha256(BLOCK).digest()
            last_s, last_cpu_s = now_s, cpu_s
            now_s, cpu_s = clock(), cores.thread_cpu_s()
            pause_s = now_s - last_s - (cpu_s - last_cpu_s)
            if pause_s > PAUSE_S:
                found.append(Pause(now_s, pause_s))
        got.append((cpu_s - before_s) / (now_s - began_s))
        pauses.append(found)

    spinning = [threading.Thread(target=run, daemon=True) for _ in range(threads)]
    for thread in spinning:
        thread.start()
    for thread in spinning:
        thread.join()
    return Spin(sum(got), period_of(pauses[0]))


def period_of(pauses: List[Pause]) -> Optional[float]:
    """Mean seconds between the ends of pauses; None for too few."""
    shortest_s = PAUSE_SHARE * _typical_s([pause.seconds for pause in pauses])
    ends_s = [pause.end_s for pause in pauses if pause.seconds >= shortest_s]
    return (ends_s[-1] - ends_s[0]) / (len(ends_s) - 1) if len(ends_s) >= FEWEST_PAUSES else None


def _typical_s(pauses_s: List[float]) -> float:
    """The pause by which half of all paused time has passed, shortest first; 0 for none.

    Neither many short interruptions nor a few long ones hide the pauses that a quota makes.
    """
    passed_s = 0.0
    for pause_s in sorted(pauses_s):
        passed_s += pause_s
        if passed_s >= sum(pauses_s) / 2:
            return pause_s
    return 0.0
