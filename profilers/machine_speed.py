"""A reference loop of fixed work shows how fast a machine computes at some time.

Its processor seconds at two times are compared: a machine slows down when it is warm, and where
other work shares its caches and its memory. The loop runs beside what it is compared with.
"""

import math
import threading
from typing import Any, Callable, List, Optional, Sequence

import numpy as np

from profilers import cores, stats
from profilers.cores import thread_cpu_s
from profilers.file_tree import FileTree
from profilers.lost_time import LostShares, LostTime
from profilers.records.readings import MachineSpeed

#: Share of the usable cores, of one at most, that the loop may take.
CPU_SHARE = 0.005
#: Shortest and longest seconds between two rounds of the loop.
LEAST_PERIOD_S, MOST_PERIOD_S = 0.02, 5.0
#: The number of this loop, to be raised with every change of its work, or of what is told of it.
LOOP = 5
#: Rounds that take more than so many times their lower quartile do not count. In runs with much
#: traffic up to half of the rounds take several times as long, probably because packets that arrive
#: are handled on their account. Gradients follow the mean of all others. A
#: machine often has two speeds, of which one takes 1.5 times as long as the other: both count.
INTERRUPTED = 2.0
#: A round is the product of some rows of a square matrix and all of them, 60 microseconds on a
#: server of 2023, and interpreted code, a third of that. Passes over a vector and reads from random
#: places, which the first loop had, vary two to three times as much as training steps do
#: (benchmarks/machine_speed.py). Many short rounds tell more than a few long ones, for a round sees
#: a moment only.
SIDE, ROWS = 128, 32
INTERPRETED = 750


class ReferenceLoop:
    """The fixed work. A call does a round of it and gives the processor seconds that it took."""

    def __init__(self) -> None:
        self._matrix = np.random.RandomState(0).uniform(size=(SIDE, SIDE)).astype(np.float32)
        self._product = np.empty((ROWS, SIDE), np.float32)
        self()  # the first round brings the arrays into the memory

    def __call__(self) -> float:
        began_s = thread_cpu_s()
        # Without a BLAS, whose threads would do a part that this thread's time does not show.
        np.einsum("ij,kj->ik", self._matrix[:ROWS], self._matrix, out=self._product)
        total = 0
        for number in range(INTERPRETED):
            total += number * number
        return thread_cpu_s() - began_s


class ReferenceRounds:
    """Rounds of a reference loop that are asked for one by one, between parts of a measurement.

    loop, tree: the machine's own, unless others are given.
    """

    def __init__(self, loop: Optional[Callable[[], float]] = None, tree: Optional[FileTree] = None) -> None:
        self._loop = ReferenceLoop() if loop is None else loop
        self._lost = LostTime(FileTree("/") if tree is None else tree)
        self._taken_s: List[float] = []

    def make(self) -> None:
        """One more round."""
        self._taken_s.append(self._loop())

    def speed(self) -> MachineSpeed:
        """By all rounds so far."""
        return _speed(self._taken_s, self._lost.so_far())


class SpeedMeter:
    """Runs a reference loop in the background, every now and then, while something is measured.

    ``start`` and ``stop`` bound a measurement; any number of them may follow each other.
    loop, usable_cores, tree: the machine's own, unless others are given.
    """

    def __init__(
        self,
        loop: Optional[Callable[[], float]] = None,
        usable_cores: Optional[float] = None,
        tree: Optional[FileTree] = None,
    ) -> None:
        self._loop = ReferenceLoop() if loop is None else loop
        self._share = CPU_SHARE * min(1.0, cores.usable_cores() if usable_cores is None else usable_cores)
        self._tree = FileTree("/") if tree is None else tree
        self._stop = threading.Event()
        self._thread: Optional[threading.Thread] = None
        self._taken_s: List[float] = []

    def __enter__(self) -> "SpeedMeter":
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Begin a measurement."""
        assert self._thread is None, "stop the meter before starting it again"
        self._lost = LostTime(self._tree)
        self._taken_s = []
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="reference loop", daemon=True)
        self._thread.start()

    def stop(self) -> MachineSpeed:
        """End the measurement; its last round may have been long before."""
        assert self._thread is not None, "start the meter before stopping it"
        self._stop.set()
        self._thread.join()
        self._thread = None
        return self.turn()

    def turn(self) -> MachineSpeed:
        """What was measured since the start or the turn before. The loop goes on in its rhythm."""
        taken_s, self._taken_s = self._taken_s, []
        return _speed(taken_s, self._lost.turn())

    def so_far(self) -> MachineSpeed:
        """What was measured up to now, without a turn."""
        return _speed(list(self._taken_s), self._lost.so_far())

    def _run(self) -> None:
        wait_s = 0.0
        while not self._stop.wait(wait_s):
            taken_s = self._loop()
            self._taken_s.append(taken_s)
            wait_s = period_s(taken_s, self._share)


def _speed(taken_s: Sequence[float], lost: LostShares) -> MachineSpeed:
    return MachineSpeed(
        uninterrupted_s(taken_s) if taken_s else None,
        stats.stdev(taken_s) if len(taken_s) > 1 else None,
        len(taken_s),
        lost.stolen,
        lost.throttled,
        LOOP,
        tuple(taken_s),
    )


def uninterrupted_s(taken_s: Sequence[float], interrupted: float = INTERRUPTED) -> float:
    """Mean time of the rounds that nothing interrupted, of one or more."""
    limit_s = interrupted * _lower_quartile(sorted(taken_s))
    counted_s = [each_s for each_s in taken_s if each_s <= limit_s]
    return math.fsum(counted_s) / len(counted_s)


def _lower_quartile(ascending: Sequence[float]) -> float:
    """Without numpy, whose functions take longer than this loop where values are few."""
    index, part = divmod((len(ascending) - 1) / 4.0, 1.0)
    low, high = ascending[int(index)], ascending[min(int(index) + 1, len(ascending) - 1)]
    return low + part * (high - low)


def period_s(loop_s: float, share: float) -> float:
    """Seconds between rounds of so many processor seconds, of which ``share`` may be taken."""
    return min(MOST_PERIOD_S, max(LEAST_PERIOD_S, loop_s / share))
