"""Checkpoints are fetched, also when a disk is full or an agent is lost."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.frameworks.layout import Layout, Variable
from backends.frameworks.optimizer import MOMENTUM
from backends.protocol.events import CheckpointWritten
from backends.training import checkpoint
from backends.training.checkpoint import Checkpoint
from planner.errors import DeviceLostError
from planner.paths import RunFolder
from planner.train.checkpoint_fetch import CheckpointFetcher
from planner.train.event_log import EventReporter
from tests.running import until

WRITTEN = CheckpointWritten("there.npz", 20, 7)


class FetchAgent:
    """An agent on the server's device."""

    def __init__(self, content: bytes | Exception) -> None:
        self.content = content
        self.closed = False

    def fetch(self, path: str, sink: Callable[[bytes], object]) -> None:
        if isinstance(self.content, Exception):
            raise self.content
        sink(self.content)

    def close(self) -> None:
        self.closed = True


class Pool:
    """A pool with one device, which starts these agents in turn."""

    def __init__(self, *agents: FetchAgent) -> None:
        self.agents = list(agents)

    def another(self, name: str) -> FetchAgent:
        return self.agents.pop(0)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def new_fetcher(folder: RunFolder, tmp_path: Path, *agents: FetchAgent) -> CheckpointFetcher:
    pool: Any = Pool(*agents)
    return CheckpointFetcher(pool, "tx2", folder, None, EventReporter(tmp_path / "events", lambda *_: None))


def test_a_full_disk_here_costs_no_agent(folder: RunFolder, tmp_path: Path) -> None:
    only = FetchAgent(b"weights")
    fetcher = new_fetcher(folder, tmp_path, only)
    fetcher.hear(WRITTEN)  # the run folder is not there to write into
    fetcher.wait()
    assert not fetcher.up_to_date and "there.npz on tx2" in fetcher.unsaved
    folder.path.mkdir()
    fetcher.finish()
    assert fetcher.up_to_date and folder.checkpoint.read_bytes() == b"weights"
    assert fetcher.agent is only and not only.closed


def test_an_agent_that_is_lost_is_closed_and_replaced(folder: RunFolder, tmp_path: Path) -> None:
    folder.path.mkdir()
    lost, other = FetchAgent(DeviceLostError("tx2: gone")), FetchAgent(b"weights")
    fetcher = new_fetcher(folder, tmp_path, lost, other)
    fetcher.hear(WRITTEN)
    fetcher.wait()
    assert lost.closed and not fetcher.up_to_date
    fetcher.finish()
    assert fetcher.agent is other and fetcher.up_to_date


def test_a_checkpoint_that_is_written_during_a_fetch_is_fetched_next(folder: RunFolder, tmp_path: Path) -> None:
    folder.path.mkdir()

    class Overtaken(FetchAgent):
        def fetch(self, path: str, sink: Callable[[bytes], object]) -> None:
            super().fetch(path, sink)
            if self.content == b"older":
                self.content = b"newer"
                fetcher.hear(WRITTEN._replace(step=40))

    fetcher = new_fetcher(folder, tmp_path, Overtaken(b"older"))
    fetcher.hear(WRITTEN)
    until(lambda: fetcher.up_to_date, lambda: "the newer one is not fetched")
    assert folder.checkpoint.read_bytes() == b"newer"


class Clock:
    """Seconds that pass with every fetch."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Slow(FetchAgent):
    """An agent whose fetches take 10 s by the clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(b"weights")
        self.clock = clock

    def fetch(self, path: str, sink: Callable[[bytes], object]) -> None:
        self.clock.now_s += 10.0
        super().fetch(path, sink)


class Rest(threading.Event):
    """Notes for how long is waited, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        return self.is_set()


def test_after_a_fetch_the_device_is_left_alone_for_nineteen_times_as_long(folder: RunFolder, tmp_path: Path) -> None:
    folder.path.mkdir()
    clock, rest = Clock(), Rest()
    fetcher = new_fetcher(folder, tmp_path, Slow(clock))
    fetcher.clock, fetcher._ending = clock, rest
    fetcher.hear(WRITTEN)
    fetcher.wait()
    assert rest.seconds == [pytest.approx(190.0)]


def test_the_end_of_the_run_ends_the_rest_and_the_last_checkpoint_is_fetched(folder: RunFolder, tmp_path: Path) -> None:
    folder.path.mkdir()
    fetcher = new_fetcher(folder, tmp_path, Slow(clock := Clock()))
    fetcher.clock = clock
    fetcher.hear(WRITTEN)
    until(lambda: fetcher.up_to_date, lambda: "it is not fetched")
    fetcher.hear(WRITTEN._replace(step=40))  # in the rest, which lasts for minutes
    assert not fetcher.up_to_date
    fetcher.finish()
    assert fetcher.up_to_date and clock.now_s == 20.0


def test_what_stayed_on_a_lost_device_is_named_with_its_step(folder: RunFolder, tmp_path: Path) -> None:
    folder.path.mkdir()
    lost = (FetchAgent(DeviceLostError("tx2: gone")) for _ in range(2))
    fetcher = new_fetcher(folder, tmp_path, *lost)
    assert fetcher.resume_hint() == "; no checkpoint had been taken"
    fetcher.hear(WRITTEN)
    fetcher.wait()
    assert fetcher.resume_hint() == ("; no checkpoint had been taken (that of step 20 is still there.npz on tx2)")
    one = np.ones(1, np.float32)
    layout = Layout((Variable("w", (1,), 0, 1),), ())
    saved = Checkpoint(one, {MOMENTUM: one}, np.empty(0, np.float32), {"step": 10, "evaluations": []}, layout)
    checkpoint.write(str(folder.checkpoint), saved)
    fetcher.hear(WRITTEN)
    fetcher.wait()
    assert fetcher.resume_hint() == (
        f"; the last checkpoint is {folder.checkpoint} of step 10 (that of step 20 is still there.npz on tx2), "
        f"go on with `planner train --resume {folder.path}`"
    )
