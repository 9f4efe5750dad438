"""A computation beside a transfer, and what of this device's processors the transfer takes from it.

A transfer costs a computing host more than the processor time of the thread that carries it out: the kernel handles
packets at the expense of whoever runs just then, and every wake-up leaves caches cold. So a process for each
processor computes all the time, and what it gets done while a transfer goes on is held against what it gets done
before and after.
"""

import array
import math
import subprocess
import sys
from bisect import bisect_left, bisect_right
from typing import List, NamedTuple, Sequence

from profilers.cores import affinity, usable_cores

#: Seconds before a transfer and after it, from which it is known how fast the computation is undisturbed.
REST_S = 0.4
#: It ends by itself after so many seconds, should nobody end it.
_LIMIT_S = 60

#: Notes when each round ends, on the clock that all processes share and on its own processor clock, and tells it all
#: when it is terminated.
_PROGRAM = """
import array, os, signal, sys, time, zlib
ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
block, marks, parent = bytes(1 << 18), array.array("d"), os.getppid()
deadline = time.monotonic() + %d
os.write(1, b"!")
while not ended and time.monotonic() < deadline and os.getppid() == parent:
    zlib.crc32(block)
    marks.append(time.monotonic())
    marks.append(time.process_time())
sys.stdout.buffer.write(marks.tobytes())
""" % _LIMIT_S


class Rounds(NamedTuple):
    """When the rounds of one process ended, ascending seconds: on the clock all processes share, and on its own."""

    ended_s: Sequence[float]
    cpu_s: Sequence[float]


class Neighbour:
    """Computes from here on, on as many processors as this device may use, until ``stop`` or ``close``."""

    def __init__(self):
        # type: () -> None
        cores = usable_cores()
        self.throttled = cores < affinity()
        command = [sys.executable, "-S", "-E", "-c", _PROGRAM]
        self._processes = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                           for _ in range(max(1, math.ceil(cores)))]
        for process in self._processes:
            assert process.stdout is not None
            process.stdout.read(1)  # it computes now

    def stop(self):
        # type: () -> List[Rounds]
        """End it; the rounds of each process."""
        for process in self._processes:
            process.terminate()
        return [_rounds(process.communicate()[0]) for process in self._processes]

    def close(self):
        # type: () -> None
        """End it, whatever it has got done. Idempotent."""
        for process in self._processes:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def taken_s(neighbour, begin_s, end_s, transfer_cpu_s):
    # type: (Neighbour, float, float, float) -> float
    """Processor seconds that a transfer between two times has taken from ``neighbour``, which ends.

    transfer_cpu_s: what the transfer's own thread used. A device with a quota gets its time in bursts, so that the
    clock on the wall tells little of a second: there it is what the thread used, and how much dearer rounds became.
    Elsewhere it is what is missing, which also holds what the kernel charges to nobody.
    """
    rounds = neighbour.stop()
    if neighbour.throttled:
        return transfer_cpu_s + sum(excess_s(each, each.cpu_s, begin_s, end_s) for each in rounds)
    return sum(excess_s(each, each.ended_s, begin_s, end_s) for each in rounds)


def excess_s(rounds, clock, begin_s, end_s):
    # type: (Rounds, Sequence[float], float, float) -> float
    """Seconds by which the rounds between two times took longer than as many before and after.

    clock: one of the two of ``rounds``, which the seconds are of. Raises ValueError where there was no round before
    and after to compare with.
    """
    first, last = bisect_left(rounds.ended_s, begin_s), bisect_right(rounds.ended_s, end_s) - 1
    around = len(clock) - 1 - (last - first)
    if first > last or around < 1 or first == 0 or last == len(clock) - 1:
        raise ValueError("nothing was computed before and after the transfer to compare with")
    within_s = clock[last] - clock[first]
    around_s = clock[-1] - clock[0] - within_s
    return max(0.0, within_s - (last - first) * around_s / around)


def _rounds(data):
    # type: (bytes) -> Rounds
    marks = array.array("d")
    marks.frombytes(data[: len(data) // (2 * marks.itemsize) * 2 * marks.itemsize])
    return Rounds(marks[::2], marks[1::2])
