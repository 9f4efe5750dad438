"""Ranks of a run as threads of one process, whose process group is memory that they share."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from backends.data.loader import BatchSource
from backends.frameworks.base import Replica
from backends.frameworks.process_group import BROKEN, ExchangeTime, GroupError, OnWait, ProcessGroup
from backends.hosting.rank import Rank
from backends.hosting.run_clock import RunClock
from backends.protocol.events import RunAccount, TimeSpent
from backends.training.run_spec import Checkpoints, RunSpec
from tests.backends.fakes import TEST, DrawnBatches, Softmax
from tests.running import HANG_S


class Table:
    """What members put down for one another, in turns."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size)
        self.entries: list[Any] = [None] * size
        self.beats = [0] * size
        self.lock = threading.Lock()


class SharedGroup(ProcessGroup):
    """A group of threads around a table."""

    def __init__(self, table: Table, rank: int) -> None:
        self.rank, self.size = rank, table.size
        self._table = table
        self._weight = 1.0
        self.closed = False

    def _all(self, entry: Any) -> list[Any]:
        """The entries of all members."""
        try:
            self._table.entries[self.rank] = entry
            self._table.barrier.wait(HANG_S)
            found = list(self._table.entries)
            self._table.barrier.wait(HANG_S)  # nobody writes before all have read
            return found
        except threading.BrokenBarrierError as error:
            raise GroupError(BROKEN) from error

    def average_gradients(self, replica: Replica, batch: int, on_wait: OnWait) -> None:
        self._on_wait = on_wait
        batches = self._all(batch)
        self._weight = batch * self.size / sum(batches)
        self.broadcast(replica.weights)

    def weigh(self, part: float) -> None:
        self._weight = part * self.size

    def gradient(
        self, replica: Replica, batch: object, rate: float, weight_decay: float, adds: bool, is_last: bool
    ) -> float:
        loss = replica.gradient(batch, rate, weight_decay, adds)
        if is_last:
            self._on_wait(True)
            replica.gradients[:] = np.mean(self._all(self._weight * replica.gradients), axis=0)
        return loss

    def exchange(self) -> ExchangeTime:
        return ExchangeTime(0.0, 0.0, 0.0)

    def gather(self, row: Sequence[float]) -> np.ndarray:
        return np.array(self._all(tuple(row)))

    def broadcast(self, values: np.ndarray) -> None:
        values[:] = self._all(values.copy())[0]

    def average(self, values: np.ndarray) -> None:
        values[:] = np.mean(self._all(values.copy()), axis=0)

    def beat(self, rank: int, by: int = 1) -> int:
        with self._table.lock:
            self._table.beats[rank] += by
            return self._table.beats[rank]

    def close(self) -> None:
        self.closed = True

    def leave(self) -> None:
        """As a member that is killed."""
        self._table.barrier.abort()


class RankThreads:
    """A run of as many ranks as there are batches; the first has the run's checkpoints.

    Batches of a rank have ``batches[rank]`` images.
    """

    def __init__(
        self,
        spec: RunSpec,
        batches: Sequence[int],
        replicas: Sequence[Replica] = (),
        skip: int = 0,
        data: Sequence[BatchSource] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.names = tuple(f"rank{number}" for number in range(len(batches)))
        self.replicas = list(replicas) or [Softmax(seed) for seed in range(len(batches))]
        self.ranks: dict[int, Rank] = {}
        self._clock = clock
        self.events: list[list[Any]] = [[] for _ in batches]
        self.stopping = [threading.Event() for _ in batches]
        table = Table(len(batches))
        self.groups = [SharedGroup(table, number) for number in range(len(batches))]
        self._data = list(data) or [drawn(number, size, skip) for number, size in enumerate(batches)]
        self._spec = spec._replace(members=len(batches))
        self._pool = ThreadPoolExecutor(len(batches))
        self._ended = [self._pool.submit(self._run, number) for number in range(len(batches))]

    def _run(self, number: int) -> tuple[RunAccount, TimeSpent]:
        spec = self._spec
        if number:
            spec = spec._replace(checkpoints=Checkpoints(None, spec.checkpoints.every))
        try:
            rank = Rank(
                spec, self.replicas[number], self.groups[number], self.names, self._data[number],
                self.events[number].append,
            )  # fmt: skip
            rank.clock = RunClock(self._clock)
            self.ranks[number] = rank
            return rank.train(TEST, self.stopping[number].is_set), rank.spent
        except ValueError:  # which all ranks raise alike
            raise
        except BaseException:
            self.groups[number].leave()
            raise

    def end(self) -> list[tuple[RunAccount, TimeSpent]]:
        """The accounts of all ranks, and where their time went."""
        try:
            return [each.result(HANG_S) for each in self._ended]
        finally:
            self._pool.shutdown()

    def emitted(self, number: int, kind: type[Any]) -> list[Any]:
        return [event for event in self.events[number] if isinstance(event, kind)]


def drawn(number: int, size: int, skip: int = 0) -> DrawnBatches:
    """What a rank trains on."""
    batches = DrawnBatches(skip, seed=number + 1)
    batches.batch = size
    return batches
