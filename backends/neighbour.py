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
from typing import List, Sequence

from profilers.cores import usable_cores

#: Seconds before a transfer and after it, from which it is known how fast the computation is undisturbed.
REST_S = 0.5
#: It ends by itself after so many seconds, should nobody end it.
_LIMIT_S = 60

#: Notes when each round ends, on the clock that all processes share, and tells it all when it is terminated. A round
#: reads what fits a second-level cache, as the inner loops of a gradient do.
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
sys.stdout.buffer.write(marks.tobytes())
""" % _LIMIT_S


class Neighbour:
    """Computes from here on, on as many processors as this device may use, until ``stop`` or ``close``."""

    def __init__(self):
        # type: () -> None
        self.cores = usable_cores()
        command = [sys.executable, "-S", "-E", "-c", _PROGRAM]
        self._processes = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                           for _ in range(max(1, math.ceil(self.cores)))]
        for process in self._processes:
            assert process.stdout is not None
            process.stdout.read(1)  # it computes now

    def stop(self):
        # type: () -> List[Sequence[float]]
        """End it; when the rounds of each process ended, monotonic seconds."""
        for process in self._processes:
            process.terminate()
        return [_marks(process.communicate()[0]) for process in self._processes]

    def close(self):
        # type: () -> None
        """End it, whatever it has got done. Idempotent."""
        for process in self._processes:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


def taken_share(marks, begin_s, end_s):
    # type: (Sequence[Sequence[float]], float, float) -> float
    """Share of the processors, 0..1, that was missing between begin and end, against before and after.

    marks: when the rounds of each process ended, ascending, on the clock of begin and end. Raises ValueError where
    there was no round before and after to compare with.
    """
    first_s, last_s = max(each[0] for each in marks if len(each)), min(each[-1] for each in marks if len(each))
    rest_s = (begin_s - first_s) + (last_s - end_s)
    within = sum(begin_s <= mark <= end_s for each in marks for mark in each)
    around = sum(first_s < mark < begin_s or end_s < mark <= last_s for each in marks for mark in each)
    if rest_s <= 0 or not around:
        raise ValueError("nothing was computed before and after the transfer to compare with")
    return max(0.0, 1.0 - (within / (end_s - begin_s)) / (around / rest_s))


def _marks(data):
    # type: (bytes) -> Sequence[float]
    marks = array.array("d")
    marks.frombytes(data[: len(data) // marks.itemsize * marks.itemsize])
    return marks
