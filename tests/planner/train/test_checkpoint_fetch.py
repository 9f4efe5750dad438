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
from planner.train.events import SlowFetch
from tests.hand_clock import HandClock
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
    until(lambda: "there.npz" in fetcher.unsaved, lambda: fetcher.unsaved)
    assert not fetcher.up_to_date and "there.npz on tx2" in fetcher.unsaved
    folder.path.mkdir()
    fetcher.finish()
    assert fetcher.up_to_date and folder.checkpoint.read_bytes() == b"weights"
    assert fetcher.agent is only and not only.closed


def test_what_is_in_a_spare_place_is_said_to_go_with_the_process_that_keeps_it(
    folder: RunFolder, tmp_path: Path
) -> None:
    fetcher = new_fetcher(folder, tmp_path, FetchAgent(b"weights"))
    fetcher.hear(CheckpointWritten("/proc/7/fd/3", 20, 7))  # the run folder is not there to write into
    until(lambda: "spare place" in fetcher.unsaved, lambda: fetcher.unsaved)
    assert fetcher.unsaved.endswith("(it is in a spare place on tx2 for as long as the run's host lives there)")
    assert "of step 20 is in a spare place on tx2" in fetcher.resume_hint(20)


def test_an_agent_that_is_lost_is_closed_and_replaced(folder: RunFolder, tmp_path: Path) -> None:
    folder.path.mkdir()
    lost, other = FetchAgent(DeviceLostError("tx2: gone")), FetchAgent(b"weights")
    fetcher = new_fetcher(folder, tmp_path, lost, other)
    fetcher.hear(WRITTEN)
    until(lambda: lost.closed, lambda: "it goes on with an agent that is lost")
    assert not fetcher.up_to_date
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


class Slow(FetchAgent):
    """An agent whose fetches take so long by the clock."""

    def __init__(self, clock: HandClock, seconds: float = 600.0) -> None:
        super().__init__(b"weights")
        self.clock = clock
        self.seconds = seconds

    def fetch(self, path: str, sink: Callable[[bytes], object]) -> None:
        self.clock.now_s += self.seconds
        super().fetch(path, sink)


class Rest(threading.Event):
    """Notes for how long is waited, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout)
        return self.is_set()


@pytest.mark.parametrize(("fetch_s", "told"), [(10.0, []), (40.0, [SlowFetch("tx2", 40.0)])])
def test_after_a_fetch_the_device_is_left_alone_for_as_long_and_a_slow_one_is_told_once(
    folder: RunFolder, tmp_path: Path, fetch_s: float, told: list[SlowFetch]
) -> None:
    folder.path.mkdir()
    clock, rest, events = HandClock(), Rest(), []
    fetcher = new_fetcher(folder, tmp_path, Slow(clock, fetch_s))
    fetcher.clock, fetcher._ending = clock, rest
    fetcher.reporter = EventReporter(tmp_path / "events", lambda _, event: events.append(event))
    for step in (20, 40):
        fetcher.hear(WRITTEN._replace(step=step))
        until(lambda: fetcher._fetching is None, lambda: "it fetches for ever")
    assert rest.seconds == [pytest.approx(fetch_s)] * 2
    assert events == told


def test_the_end_of_the_run_ends_the_rest_and_the_last_checkpoint_is_fetched(folder: RunFolder, tmp_path: Path) -> None:
    folder.path.mkdir()
    fetcher = new_fetcher(folder, tmp_path, Slow(clock := HandClock()))
    fetcher.clock = clock
    fetcher.hear(WRITTEN)
    until(lambda: fetcher.up_to_date, lambda: "it is not fetched")
    fetcher.hear(WRITTEN._replace(step=40))  # in the rest, which lasts for minutes
    assert not fetcher.up_to_date
    fetcher.finish()
    assert fetcher.up_to_date and clock.now_s == 1200.0


def test_what_is_written_while_the_run_ends_is_left_to_its_last_fetch_and_nothing_half_stays(
    folder: RunFolder, tmp_path: Path
) -> None:
    folder.path.mkdir()
    fetcher = new_fetcher(folder, tmp_path, FetchAgent(b"weights"))
    fetcher.finish()
    fetcher.hear(WRITTEN)
    assert fetcher._fetching is None and not fetcher.up_to_date
    fetcher.finish()
    assert fetcher.up_to_date
    (folder.path / "checkpoint.part").touch()  # of a fetch that no one waits for
    fetcher.close()
    assert [path.name for path in folder.path.iterdir()] == ["checkpoint.npz"]


def test_what_stayed_on_a_lost_device_is_named_with_its_step(folder: RunFolder, tmp_path: Path) -> None:
    folder.path.mkdir()
    lost = (FetchAgent(DeviceLostError("tx2: gone")) for _ in range(3))
    fetcher = new_fetcher(folder, tmp_path, *lost)
    assert fetcher.resume_hint(0) == "; no step had been made, so there is nothing to go on from"
    assert fetcher.resume_hint(5) == "; no checkpoint had been taken"
    fetcher.hear(WRITTEN)
    fetcher.finish()
    assert fetcher.resume_hint(20) == ("; no checkpoint had been taken (that of step 20 is still there.npz on tx2)")
    one = np.ones(1, np.float32)
    layout = Layout((Variable("w", (1,), 0, 1),), ())
    saved = Checkpoint(one, {MOMENTUM: one}, np.empty(0, np.float32), {"step": 10, "evaluations": []}, layout)
    checkpoint.write(str(folder.checkpoint), saved)
    fetcher.hear(WRITTEN)
    fetcher.finish()
    assert fetcher.resume_hint(20) == (
        f"; the last checkpoint is {folder.checkpoint} of step 10 (that of step 20 is still there.npz on tx2), "
        f"go on with `planner train --resume {folder.path}`"
    )
