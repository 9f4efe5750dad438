"""The result of a run reaches the operator, whatever happens at its end."""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from backends.frameworks.layout import Layout, Variable
from backends.frameworks.optimizer import MOMENTUM
from backends.protocol.events import CheckpointWritten, Dropped, Evaluated, Joined, Left, Progress, RunAccount
from backends.protocol.orders import RemoveFile
from backends.training import checkpoint
from planner.agents.call import Event
from planner.errors import AgentError, DeviceLostError, InterruptedRunError, JobError, PlannerError, RunError
from planner.paths import RunFolder
from planner.run.supervisor import Signals, Supervisor
from planner.train.checkpoint_fetch import CheckpointFetcher
from planner.train.event_log import EventReporter
from planner.train.monitor import RunMonitor, ServerProcess
from planner.train.telemetry import MemberReports
from tests.running import until

STEPS = 30
DONE = RunAccount(STEPS, STEPS, 1.0, {}, True)
STOPPED = DONE._replace(finished=False, reason="stopped")


class ServerCall:
    """The server's order: it reports these events and ends so, once stopped if it ``waits``."""

    def __init__(self, outcome: RunAccount | Exception, *events: Event, waits: bool = False) -> None:
        self._outcome = outcome
        self._events = events
        self._stopped = threading.Event()
        if not waits:
            self._stopped.set()

    def result(self, silence_s: float | None, on_event: Callable[[Event], None]) -> Event:
        for event in self._events:
            on_event(event)
        self._stopped.wait()
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def stop(self) -> None:
        self._stopped.set()


class Agent:
    """The agent on the server's device, which records the files it removes."""

    name = "tx2"
    lost = False

    def __init__(self) -> None:
        self.removed: list[str] = []

    def start(self, call: ServerCall) -> ServerCall:
        return call

    def call(self, order: RemoveFile, timeout_s: float) -> None:
        self.removed.append(order.path)

    def fetch(self, path: str, sink: Callable[[bytes], object]) -> None:
        sink(Path(path).read_bytes())

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


class Clock:
    """Shows these times in turn, and the last one ever after."""

    def __init__(self, *times_s: float) -> None:
        self._times_s = list(times_s)
        self.now_s = 0.0

    def __call__(self) -> float:
        if self._times_s:
            self.now_s = self._times_s.pop(0)
        return self.now_s


class Run:
    """A run that has begun. ``there``: the server's checkpoint; ``ranks``: all needed."""

    def __init__(
        self,
        folder: Path,
        call: ServerCall,
        events: queue.Queue[tuple[str, Event]] | None = None,
        stops_all: bool = False,
        clock: Callable[[], float] = time.monotonic,
        ranks: Mapping[str, Any] | None = None,
        workers: Mapping[str, Any] | None = None,
    ) -> None:
        self.there = folder / "there.npz"
        layout = Layout((Variable("w", (1,), 0, 1),), ())
        one = np.ones(1, np.float32)
        meta = {"step": STEPS, "evaluations": []}
        saved = checkpoint.Checkpoint(one, {MOMENTUM: one}, np.empty(0, np.float32), meta, layout)
        checkpoint.write(str(self.there), saved)
        self.folder = RunFolder(folder)
        self.agent: Any = Agent()
        self.reporter = EventReporter(self.folder.events, lambda *_: None)
        self.fetcher = CheckpointFetcher(self.agent, "tx2", self.folder, None, self.reporter)
        signals = Signals(threading.Event(), threading.Event(), events or queue.Queue())
        order = Supervisor("tx2", self.agent, call, signals, on_event=self.fetcher.hear)
        server = ServerProcess(order, (str(self.there), "resume.npz"), stops_all, ranks is not None)
        members = ranks or workers or {}
        self.monitor = RunMonitor(
            server, members, self.fetcher, {"tx2": MemberReports()}, self.reporter, signals, clock
        )

    @property
    def files_removed(self) -> bool:
        return self.agent.removed == [str(self.there), "resume.npz"]


def saved(folder: Path) -> Event:
    return CheckpointWritten(str(folder / "there.npz"), STEPS, 100)


def test_a_finished_run_gives_its_account_and_leaves_nothing_there(tmp_path: Path) -> None:
    run = Run(tmp_path, ServerCall(DONE, saved(tmp_path)))
    assert run.monitor.run() == DONE
    assert run.fetcher.has(STEPS) and run.files_removed


@pytest.mark.parametrize("events", [[], [Progress(1, STEPS, 1.0, {})]], ids=["the end", "an event"])
def test_ctrl_c_while_something_is_taken_from_the_queue_loses_no_account(tmp_path: Path, events: list[Event]) -> None:
    run = Run(tmp_path, ServerCall(DONE, saved(tmp_path), *events), Interrupted())
    assert run.monitor.run() == DONE


def test_ctrl_c_while_the_end_is_files_removed_up_keeps_the_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, ServerCall(DONE, saved(tmp_path)))
    monkeypatch.setattr(run.monitor, "_drain", interrupt)
    assert run.monitor.run() == DONE


def test_ctrl_c_while_the_weights_come_home_names_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path, ServerCall(DONE))
    monkeypatch.setattr(run.fetcher, "finish", interrupt)
    with pytest.raises(InterruptedRunError, match="stopped at once; no checkpoint had been taken"):
        run.monitor.run()


def test_a_run_that_is_stopped_says_how_to_go_on_and_leaves_nothing_there(tmp_path: Path) -> None:
    run = Run(tmp_path, ServerCall(STOPPED, saved(tmp_path), waits=True), Interrupted())
    with pytest.raises(InterruptedRunError, match=f"stopped after step {STEPS} of {STEPS}.* --resume {tmp_path}"):
        run.monitor.run()
    assert run.files_removed


def test_a_server_that_fails_leaves_nothing_there_but_what_is_not_here(tmp_path: Path) -> None:
    run = Run(tmp_path, ServerCall(AgentError("tx2: serve: no memory"), saved(tmp_path)))
    with pytest.raises(RunError, match="no memory"):
        run.monitor.run()
    assert run.files_removed

    run = Run(tmp_path, ServerCall(AgentError("tx2: serve: no memory"), CheckpointWritten("nowhere.npz", STEPS, 100)))
    with pytest.raises(RunError, match="no memory"):
        run.monitor.run()
    assert not run.files_removed


def test_whatever_ends_the_listening_ends_the_run(tmp_path: Path) -> None:
    run = Run(tmp_path, ServerCall(OSError(28, "No space left on device")))
    with pytest.raises(RunError, match="tx2: OSError: .*No space left"):
        run.monitor.run()


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_run_for_so_long_ends_with_the_account_of_what_it_made(tmp_path: Path) -> None:
    run = Run(tmp_path, ServerCall(STOPPED._replace(done=12), waits=True))
    assert run.monitor.run(lasting_s=0.1).done == 12
    assert '"time_over"' in run.folder.events.read_text()


def test_one_that_diverges_meanwhile_has_failed(tmp_path: Path) -> None:
    run = Run(tmp_path, ServerCall(STOPPED._replace(reason="training diverged"), waits=True))
    with pytest.raises(RunError, match="training diverged"):
        run.monitor.run(lasting_s=0.1)


def test_ctrl_c_is_heard_after_it_was_told_that_it_is_enough(tmp_path: Path) -> None:
    run = Run(tmp_path, ServerCall(STOPPED, waits=True), Interrupted())
    with pytest.raises(InterruptedRunError, match="stopped"):
        run.monitor.run(lasting_s=0.0)


@pytest.mark.parametrize(("stops_all", "end_s"), [(True, 0.7), (False, 0.3)])
def test_a_run_for_some_time_lasts_longer_by_evaluations_that_everyone_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops_all: bool, end_s: float
) -> None:
    call = ServerCall(STOPPED._replace(done=12), waits=True)
    events: queue.Queue[tuple[str, Event]] = queue.Queue()
    events.put(("tx2", Evaluated(3, "tx2", 1.0, {"accuracy": 0.5}, 0.5)))
    clock = Clock(0.0, 0.05, 0.3, 0.7)
    stopped_s: list[float] = []
    stop = call.stop

    def recorded_stop() -> None:
        stopped_s.append(clock.now_s)
        stop()

    monkeypatch.setattr(call, "stop", recorded_stop)
    Run(tmp_path, call, events, stops_all, clock).monitor.run(lasting_s=0.1)
    assert stopped_s == [end_s]


class Rank:
    """What the supervisor of a rank knows; its error comes when it has been asked so often."""

    result = None

    def __init__(self, error: PlannerError | None, after: int = 0) -> None:
        self._error, self._after = error, after
        self.agent_ended = False

    @property
    def error(self) -> PlannerError | None:
        self._after -= 1
        return self._error if self._after < 0 else None

    def end_agent(self) -> None:
        self.agent_ended = True


def test_one_lost_rank_ends_a_run_that_needs_all_and_the_others_see_its_end(tmp_path: Path) -> None:
    ranks = {"tx1": Rank(None), "nano": Rank(DeviceLostError("nano: the agent ended"))}
    with pytest.raises(RunError, match="^nano: the agent ended"):
        Run(tmp_path, ServerCall(STOPPED, waits=True), ranks=ranks).monitor.run()
    assert ranks["nano"].agent_ended and not ranks["tx1"].agent_ended


def test_what_a_host_saves_as_it_fails_after_a_rank_is_fetched_and_the_cause_is_the_rank(tmp_path: Path) -> None:
    ranks = {"nano": Rank(JobError("nano: KeyError: 'x', at job.py:3"))}
    progress = Progress(STEPS, STEPS + 10, 1.0, {})
    call = ServerCall(AgentError("tx2: the exchange broke off"), saved(tmp_path), progress, waits=True)
    message = f"^nano: KeyError: 'x', at job.py:3; the last checkpoint is {tmp_path}/checkpoint.npz of step {STEPS}"
    with pytest.raises(RunError, match=message):
        Run(tmp_path, call, ranks=ranks).monitor.run()


def test_an_error_before_the_first_step_says_that_there_is_nothing_to_go_on_from(tmp_path: Path) -> None:
    call = ServerCall(JobError("tx2: KeyError: 'x', at job.py:3"), Progress(0, STEPS, 0.1, {}))
    with pytest.raises(RunError, match="at job.py:3; no step had been made, so there is nothing to go on from$"):
        Run(tmp_path, call).monitor.run()


def test_a_member_s_failure_is_told_where_its_host_knows_no_more_than_that_it_stopped(tmp_path: Path) -> None:
    failing = {"tx1": Rank(JobError("tx1: KeyError: 'x'"), after=99)}
    run = Run(tmp_path, ServerCall(STOPPED._replace(reason="tx1 failed"), saved(tmp_path)), workers=failing)
    until(lambda: run.monitor._order.ended, lambda: "the host does not end")
    failing["tx1"]._after = 1
    with pytest.raises(RunError, match="^tx1: KeyError: 'x'; stopped after step 30 of 30; the last checkpoint"):
        run.monitor.run()


def test_weights_that_cannot_be_fetched_are_a_problem_of_a_run_that_is_complete(tmp_path: Path) -> None:
    run = Run(tmp_path, ServerCall(DONE, CheckpointWritten(str(tmp_path / "nowhere.npz"), STEPS, 100)))
    assert run.monitor.run() == DONE
    (problem,) = run.monitor.problems
    assert problem.startswith("the trained weights could not be saved") and "nowhere.npz on tx2" in problem


class SlowAgent(Agent):
    """Its files come when somebody has been told of the failure of a worker."""

    def __init__(self, asked: threading.Event) -> None:
        super().__init__()
        self._asked = asked

    def fetch(self, path: str, sink: Callable[[bytes], object]) -> None:
        self._asked.wait()
        time.sleep(0.05)
        super().fetch(path, sink)


def test_the_checkpoint_that_is_on_its_way_then_is_waited_for(tmp_path: Path) -> None:
    asked = threading.Event()

    class Asked(Rank):
        @property
        def error(self) -> PlannerError | None:
            found = super().error
            if found is not None:
                asked.set()
            return found

    call = ServerCall(STOPPED, saved(tmp_path), waits=True)
    run = Run(tmp_path, call, workers={"tx1": Asked(JobError("tx1: KeyError: 'x'"), after=2)})
    run.fetcher.pool = SlowAgent(asked)  # type: ignore[assignment]
    message = f"^tx1: KeyError: 'x'; stopped after step 30 of 30; the last checkpoint is {tmp_path}/checkpoint.npz"
    with pytest.raises(RunError, match=message):
        run.monitor.run()
    assert run.fetcher.has(STEPS)


def test_a_run_ends_with_the_last_member_unless_one_that_had_left_comes_back(tmp_path: Path) -> None:
    workers = {"a": Rank(DeviceLostError("a: its device is gone")), "b": Rank(None)}
    run = Run(tmp_path, ServerCall(STOPPED, saved(tmp_path), waits=True), workers=workers)
    for event in (Left("b", "the stream has ended"), Joined("b")):
        run.monitor.handle("server", event)
    assert run.monitor.outcome(ended=False) is None
    run.monitor.handle("server", Left("b", "the stream has ended"))
    with pytest.raises(RunError, match=f"^a: its device is gone; stopped after step {STEPS} .*--resume {tmp_path}"):
        run.monitor.run()


def test_a_worker_that_is_given_up_is_reported_with_the_reason(tmp_path: Path) -> None:
    workers = {"tx1": Rank(None), "nano": Rank(DeviceLostError("nano: parameter server closed the connection"))}
    run = Run(tmp_path, ServerCall(DONE), workers=workers)
    run.monitor.handle("server", Dropped("nano", "it was silent"))
    run.monitor.handle("nano", None)
    assert "nano: it was silent" in run.folder.events.read_text().splitlines()[-1]
