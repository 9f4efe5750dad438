"""Spinning threads show how many cores a process really gets.

Its affinity and its quotas may promise more: a virtual machine is not told of its host's limits.
"""

import hashlib
import math
import threading
import time
from typing import List, Optional

from profilers import cores
from profilers.records import SpunCores

#: Seconds that one thread spins, and that all do: several periods of a quota, of 0.1 s by default.
ONE_S, EVERY_S = 0.25, 0.75
#: The share of the cores promised below which the measured ones count: less than the noise of
#: other work on a machine that is at rest.
NOTICEABLE = 0.9
#: What a thread hashes at a time, without Python's lock.
BLOCK = bytes(1 << 20)

_last: Optional[SpunCores] = None


def measure(usable_cores: Optional[float] = None) -> SpunCores:
    """Spin with a thread for every usable core, then with one; this process remembers it."""
    global _last  # an agent measures once, for all that it profiles later
    read = cores.usable_cores() if usable_cores is None else usable_cores
    threads = max(1, math.ceil(read))
    every = spin(threads, EVERY_S)
    _last = SpunCores(every if threads == 1 else spin(1, ONE_S), every, threads)
    return _last


def available_cores() -> float:
    """The cores that count: the usable ones, or the measured ones where these are fewer."""
    return fewer(cores.usable_cores(), _last)


def fewer(usable_cores: float, spun: Optional[SpunCores]) -> float:
    """The measured cores where they are noticeably fewer than the usable ones, else these."""
    return usable_cores if spun is None or spun.every >= NOTICEABLE * usable_cores else spun.every


def spin(threads: int, seconds: float) -> float:
    """Cores that so many threads get: their processor seconds over seconds."""
    begin = threading.Barrier(threads)
    got: List[float] = []

    def run() -> None:
        begin.wait()
        began_s, before_s = time.monotonic(), cores.thread_cpu_s()
        while time.monotonic() - began_s < seconds:
            hashlib.sha256(BLOCK).digest()
        got.append((cores.thread_cpu_s() - before_s) / (time.monotonic() - began_s))

    spinning = [threading.Thread(target=run, daemon=True) for _ in range(threads)]
    for thread in spinning:
        thread.start()
    for thread in spinning:
        thread.join()
    return sum(got)
