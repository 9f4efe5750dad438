"""The end of a run: what the server came to reaches the operator, whatever happens at that moment."""

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.frameworks.base import Variable
from backends.protocol.events import CheckpointWritten, Evaluated, Progress, RunAccount
from backends.protocol.orders import RemoveFile
from backends.training import checkpoint
from backends.training.layout import Layout
from planner.agents.client import Event
from planner.errors import AgentError, InterruptedRunError, RunError
from planner.paths import RunFolder
from planner.train.checkpoint_fetch import CheckpointFetcher
from planner.train.event_log import EventReporter
from planner.train.monitor import RunMonitor, ServerProcess
from planner.train.telemetry import Telemetry
from planner.train.worker_restart import Signals
from profilers.records import encode

STEPS = 30
DONE = RunAccount(STEPS, STEPS, 1.0, {}, True)
STOPPED = DONE._replace(finished=False, reason="stopped")


class ServersCall:
    """The server's order, which says these events and comes to this; it waits to be stopped if it is to."""

    def __init__(self, outcome: RunAccount | Exception, *events: Event, waits: bool = False) -> None:
        self._outcome = outcome
        self._events = events
        self._stopped = threading.Event()
        if not waits:
            self._stopped.set()

    def result(self, on_event: Callable[[Event], None]) -> Event:
        for event in self._events:
            on_event(event)
        self._stopped.wait()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return encode(self._outcome)

    def stop(self) -> None:
        self._stopped.set()


class Agent:
    """The server's device, which notes what is removed."""

    def __init__(self) -> None:
        self.removed: list[str] = []

    def call(self, order: RemoveFile, timeout_s: float) -> None:
        self.removed.append(order.path)

    def fetch(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def close(self) -> None:
        pass

    def another(self, name: str) -> "Agent":
        return self


class Interrupted(queue.Queue[tuple[str, Event]]):
    """Ctrl-C comes when something has just been taken out."""

    times = 1

    def get(self, block: bool = True, timeout: float | None = None) -> tuple[str, Event]:
        item = super().get(block, timeout)
        if self.times:
            self.times -= 1
            raise KeyboardInterrupt
        return item


class Run:
    """A run that has begun. ``there``: the server's checkpoint."""

    def __init__(
        self,
        folder: Path,
        call: ServersCall,
        events: queue.Queue[tuple[str, Event]] | None = None,
        holds_up: bool = False,
    ) -> None:
        self.there = folder / "there.npz"
        variables = (Variable("w", (1,), 0, 1),)
        one = np.ones(1, np.float32)
        meta = {"step": STEPS, "evaluations": []}
        checkpoint.write(
            str(self.there), checkpoint.Checkpoint(one, one, np.empty(0, np.float32), meta), Layout(variables, ())
        )
        self.folder = RunFolder(folder)
        self.agent: Any = Agent()
        self.journal = EventReporter(self.folder.events, lambda *_: None)
        self.courier = CheckpointFetcher(self.agent, "tx2", self.folder, None, self.journal)
        signals = Signals(threading.Event(), threading.Event(), events or queue.Queue())
        order: Any = call
        server = ServerProcess("tx2", "tx2", self.agent, order, (str(self.there), "resume.npz"), holds_up)
        self.supervisor = RunMonitor(server, {}, self.courier, Telemetry(["tx2"]), self.journal, signals)

    @property
    def tidied(self) -> bool:
        return self.agent.removed == [str(self.there), "resume.npz"]


def saved(folder: Path) -> Event:
    return CheckpointWritten(str(folder / "there.npz"), STEPS, 100)


def test_a_finished_run_gives_its_account_and_leaves_nothing_there(tmp_path: Path) -> None:
    run = Run(tmp_path, ServersCall(DONE, saved(tmp_path)))
    assert run.supervisor.run() == DONE
    assert run.courier.has(STEPS) and run.tidied


@pytest.mark.parametrize("events", [[], [Progress(1, STEPS, 1.0, {})]], ids=["the end", "an event"])
def test_ctrl_c_while_something_is_taken_from_the_queue_loses_no_account(tmp_path: Path, events: list[Event]) -> None:
    run = Run(tmp_path, ServersCall(DONE, saved(tmp_path), *events), Interrupted())
    assert run.supervisor.run() == DONE


def test_ctrl_c_while_the_end_is_tidied_up_keeps_the_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(tmp_path, ServersCall(DONE, saved(tmp_path)))
    monkeypatch.setattr(run.supervisor, "_drain", interrupt)
    assert run.supervisor.run() == DONE


def test_ctrl_c_while_the_weights_come_home_names_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, ServersCall(DONE))
    monkeypatch.setattr(run.courier, "finish", interrupt)
    with pytest.raises(InterruptedRunError, match="stopped at once; no checkpoint had been taken"):
        run.supervisor.run()


def test_a_run_that_is_stopped_says_how_to_go_on_and_leaves_nothing_there(tmp_path: Path) -> None:
    run = Run(tmp_path, ServersCall(STOPPED, saved(tmp_path), waits=True), Interrupted())
    with pytest.raises(InterruptedRunError, match=f"stopped after step {STEPS} of {STEPS}.* --resume {tmp_path}"):
        run.supervisor.run()
    assert run.tidied


def test_a_server_that_fails_leaves_nothing_there_but_what_is_not_here(tmp_path: Path) -> None:
    run = Run(tmp_path, ServersCall(AgentError("tx2: serve: no memory"), saved(tmp_path)))
    with pytest.raises(RunError, match="no memory"):
        run.supervisor.run()
    assert run.tidied

    run = Run(tmp_path, ServersCall(AgentError("tx2: serve: no memory"), CheckpointWritten("nowhere.npz", STEPS, 100)))
    with pytest.raises(RunError, match="no memory"):
        run.supervisor.run()
    assert not run.tidied


def test_whatever_ends_the_listening_ends_the_run(tmp_path: Path) -> None:
    run = Run(tmp_path, ServersCall(OSError(28, "No space left on device")))
    with pytest.raises(RunError, match="tx2: OSError: .*No space left"):
        run.supervisor.run()


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_run_for_so_long_ends_with_the_account_of_what_it_made(tmp_path: Path) -> None:
    run = Run(tmp_path, ServersCall(STOPPED._replace(done=12), waits=True))
    assert run.supervisor.run(lasting_s=0.1).done == 12
    assert '"time_over"' in run.folder.events.read_text()


def test_one_that_diverges_meanwhile_has_failed(tmp_path: Path) -> None:
    run = Run(tmp_path, ServersCall(STOPPED._replace(reason="training diverged"), waits=True))
    with pytest.raises(RunError, match="training diverged"):
        run.supervisor.run(lasting_s=0.1)


def test_ctrl_c_is_heard_after_it_was_told_that_it_is_enough(tmp_path: Path) -> None:
    run = Run(tmp_path, ServersCall(STOPPED, waits=True), Interrupted())
    with pytest.raises(InterruptedRunError, match="stopped"):
        run.supervisor.run(lasting_s=0.0)


@pytest.mark.parametrize(("holds_up", "least_s"), [(True, 0.6), (False, 0.1)])
def test_a_run_for_some_time_lasts_longer_by_evaluations_that_everyone_waits_for(
    tmp_path: Path, holds_up: bool, least_s: float
) -> None:
    stopped = STOPPED._replace(done=12)
    call = ServersCall(stopped, Evaluated(3, "tx2", 1.0, 0.5, 0.5), waits=True)
    began_s = time.monotonic()
    Run(tmp_path, call, holds_up=holds_up).supervisor.run(lasting_s=0.1)
    took_s = time.monotonic() - began_s
    assert took_s >= least_s
    assert holds_up or took_s < 0.5
