"""An interference probe measures the processor time a transfer takes from a computation.

It is more than that of the thread that transfers: the kernel handles packets at the expense of
whoever runs, and every wake-up leaves caches cold. So a process for each processor computes all the
time. A transfer comes in turns, and what is computed in a turn is held against what is computed
just before and after, so that a machine whose speed drifts does not pass for a loss.
"""

import array
import contextlib
import math
import statistics
import subprocess
import sys
import time
from bisect import bisect_left, bisect_right
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

from profilers.cpu_quota import affinity, usable_cores
from profilers.thread_times import thread_cpu_s

#: Seconds before each turn of a transfer and after it, from which it is known how fast the
#: computation is undisturbed.
REST_S = 0.15
#: Seconds until a computation that has just begun is as fast as ever.
_COLD_S = 0.1
#: It ends by itself after so many seconds, should nobody end it.
_LIMIT_S = 60

#: Notes when each round ends, on the clock that all processes share and on its own processor clock,
#: and tells it all when it is terminated.
_PROGRAM = (
    """
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
"""
    % _LIMIT_S
)


class ComputedBlocks(NamedTuple):
    """Ascending end times of the rounds of one process: on the shared clock, and on its own."""

    ended_s: Sequence[float]
    cpu_s: Sequence[float]


class TransferTurn(NamedTuple):
    """One stretch of a transfer between rests, and the processor seconds of its thread."""

    begin_s: float
    end_s: float
    cpu_s: float


class InterferenceProbe:
    """Computes on all processors that this device may use, until ``stop`` or ``close``."""

    def __init__(self) -> None:
        self.turns: List[TransferTurn] = []
        cores = usable_cores()
        self.throttled = cores < affinity()
        command = [sys.executable, "-S", "-E", "-c", _PROGRAM]
        self._processes: List["subprocess.Popen[bytes]"] = []
        try:
            for _ in range(max(1, math.ceil(cores))):
                self._processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
            for process in self._processes:
                assert process.stdout is not None
                process.stdout.read(1)  # it computes now
        except BaseException:
            self.close()
            raise

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """A turn of a transfer by this thread."""
        began_s, before_s = time.monotonic(), thread_cpu_s()
        yield
        self.turns.append(TransferTurn(began_s, time.monotonic(), thread_cpu_s() - before_s))

    def stop(self) -> List[ComputedBlocks]:
        """End it; the rounds of each process."""
        for process in self._processes:
            process.terminate()
        return [_rounds(process.communicate()[0]) for process in self._processes]

    def close(self) -> None:
        """End it, whatever it has got done. Idempotent."""
        for process in self._processes:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


@contextlib.contextmanager
def computing() -> Iterator[InterferenceProbe]:
    """A computation that is as fast as ever, beside which this thread transfers in turns."""
    with contextlib.closing(InterferenceProbe()) as probe:
        time.sleep(_COLD_S + REST_S)
        yield probe


def stolen_cpu_s(probe: InterferenceProbe) -> Optional[float]:
    """End the probe; the processor seconds that the turns of a transfer took from it.

    A device with a quota gets its time in bursts: there it is what the transfer's thread used, and
    how much dearer rounds became. Elsewhere it is what is missing, which also holds what the kernel
    charges to nobody. The median turn stands for all. None where other work left no turn to
    compare.
    """
    rounds = probe.stop()
    throttled, turns = probe.throttled, probe.turns
    excesses = [
        sum(excess_s(each, each.cpu_s if throttled else each.ended_s, turn) for each in rounds) for turn in turns
    ]
    known = [excess for excess in excesses if not math.isnan(excess)]
    if not known:
        return None
    lost_s = max(0.0, statistics.median(known)) * len(turns)
    return lost_s + (sum(turn.cpu_s for turn in turns) if throttled else 0.0)


def excess_s(rounds: ComputedBlocks, clock: Sequence[float], turn: TransferTurn) -> float:
    """Seconds by which a turn's rounds took longer than as many just before and after.

    clock: one of the two of ``rounds``. NaN where two rounds are lacking to compare.
    """
    before_s, _ = _cost(rounds, clock, turn.begin_s - REST_S, turn.begin_s)
    within_s, count = _cost(rounds, clock, turn.begin_s, turn.end_s)
    after_s, _ = _cost(rounds, clock, turn.end_s, turn.end_s + REST_S)
    return count * (within_s - (before_s + after_s) / 2)


def _cost(rounds: ComputedBlocks, clock: Sequence[float], begin_s: float, end_s: float) -> Tuple[float, int]:
    """Seconds of one round between two times, NaN where none is whole, and how many there were."""
    first, last = bisect_left(rounds.ended_s, begin_s), bisect_right(rounds.ended_s, end_s) - 1
    if first >= last:
        return math.nan, 0
    return (clock[last] - clock[first]) / (last - first), last - first


def _rounds(data: bytes) -> ComputedBlocks:
    marks = array.array("d")
    marks.frombytes(data[: len(data) // (2 * marks.itemsize) * 2 * marks.itemsize])
    return ComputedBlocks(marks[::2], marks[1::2])
