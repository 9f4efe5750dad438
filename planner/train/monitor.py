"""A monitor handles a run's events until its account and its last checkpoint have arrived."""

import math
import queue
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from backends.frameworks.process_group import BROKEN
from backends.protocol.events import CheckpointFailed, CheckpointWritten, Dropped, Evaluated, Joined, Left, RunAccount
from backends.protocol.orders import RemoveFile
from backends.training.run_spec import STOPPED
from backends.training.stopping import EARLY_ENDS
from planner.agents.call import TICK_S, Call, Event
from planner.agents.client import AgentClient
from planner.errors import DeviceLostError, InterruptedRunError, RemoteError, RunError
from planner.run.order_at_work import OrderAtWork
from planner.train.checkpoint_fetch import CheckpointFetcher
from planner.train.event_log import EventReporter
from planner.train.events import MemberEnded, MemberLost, RunEnded, Stopping, TimeOver
from planner.train.telemetry import Telemetry
from planner.train.worker_restart import Signals, WorkerSupervisor

STOP_S = 60.0
#: Longest wait for the cause, once a member says that its exchange broke off.
CAUSE_S = 5.0
DRAIN_S = 5.0
REMOVE_S = 10.0


class ServerProcess(NamedTuple):
    """The host of a run at work.

    source: the name that its events bear.
    call: its order, which ``agent`` carries out.
    files: the paths of the run's files on the device.
    evaluation_stops_all: whether the whole cluster waits for an evaluation.
    needs_all: whether the run ends with the first member that is lost.
    """

    source: str
    device: str
    agent: AgentClient
    call: Call
    files: tuple[str, ...]
    evaluation_stops_all: bool = False
    needs_all: bool = False


@dataclass
class RunMonitor:
    """Handles the events of a run. A cluster of one device has no supervisors."""

    server: ServerProcess
    supervisors: Mapping[str, WorkerSupervisor]
    fetcher: CheckpointFetcher
    telemetry: Telemetry
    reporter: EventReporter
    signals: Signals
    clock: Callable[[], float] = time.monotonic
    _order: OrderAtWork = field(init=False)
    _time_is_over: bool = field(default=False, init=False)
    _held_up_s: float = field(default=0.0, init=False)
    _cause_by_s: float | None = field(default=None, init=False)
    _left: set[str] = field(default_factory=set, init=False)  # members at whom no more samples arrive

    def __post_init__(self) -> None:
        server = self.server
        self._order = OrderAtWork(server.source, server.device, server.call, self.signals.events)

    def run(self, lasting_s: float = math.inf) -> RunAccount:
        """Watch until the last step, or for ``lasting_s``; returns the server's account.

        Evaluations that stop the whole cluster do not count, as in the time of the result.
        Raises RunError, and InterruptedRunError on Ctrl-C.
        """
        self._order.listen(self._fetch)
        end_s = self.clock() + lasting_s
        stop_by: float | None = None
        while True:
            try:
                if self.clock() > end_s + self._held_up_s:
                    end_s = math.inf
                    self._time_is_over = True
                    self.signals.over.set()  # a worker that is cut off now is not started again
                    self.reporter.report("planner", TimeOver())
                    self._order.stop()
                if stop_by is not None and self.clock() > stop_by:
                    raise self._interrupted(f"the server did not stop within {STOP_S:g} s")
                account = self._next()
                if account is not None:
                    self.signals.over.set()
                    return self._end(account, interrupted=stop_by is not None)
                if stop_by is None:
                    self._check_workers()
            except KeyboardInterrupt:
                if stop_by is not None or self.signals.over.is_set():
                    done: RunAccount | None = self._order.result
                    if done is not None and self._is_saved(done):
                        return done
                    raise self._interrupted("stopped at once") from None
                self.reporter.report("planner", Stopping())
                stop_by = self.clock() + STOP_S
                self._order.stop()

    def _fetch(self, event: Event) -> None:
        """Not after other events: Ctrl-C may lose what was just taken from their queue."""
        if isinstance(event, CheckpointWritten):
            self.fetcher.fetch_in_background(event)

    def _next(self) -> RunAccount | None:
        """Handle one event; returns the account after the last one.

        Raises RunError where the server has failed.
        """
        # Read before the queue, which holds by now all events that came before them.
        account: RunAccount | None = self._order.result
        error = self._order.error
        with suppress(queue.Empty):
            source, event = self.signals.events.get(timeout=TICK_S)
            if event is not None:
                self._handle(source, event)
                self.reporter.report(source, event)
            if not self.signals.events.empty():
                return None
        if error is None:
            return account
        reason = self._cause(str(error)) if self.server.needs_all else str(error)
        if reason is None:
            return None
        self.fetcher.wait()
        self._remove_files()
        if isinstance(error, DeviceLostError) and not self.server.needs_all:
            reason = f"the server on {self.server.device} is lost: {error}"
        raise self._failed(reason)

    def _cause(self, *reasons: str) -> str | None:
        """Why a run that needs all its members failed; None until it is known.

        When a member is lost, the others report that their exchange broke off, often before its
        own end is known.
        """
        reasons += tuple(each.failure for each in self.supervisors.values() if each.failure is not None)
        causes = [reason for reason in reasons if BROKEN not in reason]
        self._cause_by_s = self._cause_by_s or self.clock() + CAUSE_S
        if causes or self.clock() > self._cause_by_s:
            return [*causes, *reasons][0]
        return None

    def _handle(self, source: str, event: Event) -> None:
        self.telemetry.add(source, event)
        if isinstance(event, Joined):
            self._left.discard(event.member)
            if event.member in self.supervisors:  # the first rank is a member and the host
                self.supervisors[event.member].joined = True
        elif isinstance(event, MemberEnded | MemberLost):
            self.supervisors[source].joined = False
        elif isinstance(event, Left):
            self._left.add(event.member)
        elif isinstance(event, Dropped):
            if event.member in self.supervisors:  # the host may name whom it likes
                self.supervisors[event.member].dropped(event.reason, event.unfit)
        elif isinstance(event, Evaluated) and self.server.evaluation_stops_all:
            self._held_up_s += event.seconds
        elif isinstance(event, CheckpointFailed):
            self.fetcher.unsaved = event.reason

    def _check_workers(self) -> None:
        """Raises RunError where all workers have been given up, or one that the run needs."""
        failures = [supervisor.failure for supervisor in self.supervisors.values() if supervisor.failure is not None]
        reason = next((each.failure for each in self.supervisors.values() if each.fails_run), None)
        if reason is None and failures and self.server.needs_all:
            reason = self._cause()
        elif reason is None and failures and len(failures) + len(self._left) == len(self.supervisors):
            reason = "; ".join(failures)
        if reason is not None:
            self.fetcher.wait()
            self._remove_files()
            raise self._failed(reason)

    def _end(self, account: RunAccount, interrupted: bool) -> RunAccount:
        self.fetcher.finish()
        self._drain()
        self.reporter.report("planner", RunEnded(account))
        self._remove_files()
        completed = self._time_is_over and not interrupted and account.reason == STOPPED
        completed |= account.reason in EARLY_ENDS and self.fetcher.has(account.done)
        if self._is_saved(account) or completed:
            return account
        where = f"after step {account.done} of {account.total}"
        if account.finished or account.reason in EARLY_ENDS:
            raise self._failed(f"the trained weights could not be saved: {self.fetcher.unsaved}")
        if interrupted:
            raise self._interrupted(f"stopped {where}")
        raise self._failed(f"{where}: {account.reason or 'the server ended early'}")

    def _is_saved(self, account: RunAccount) -> bool:
        """Whether the run has been trained to its end and its weights are in the run folder."""
        return bool(account.finished) and self.fetcher.has(account.done)

    def _remove_files(self) -> None:
        """Remove the run's files from the server's device once its last checkpoint is here."""
        if self.fetcher.up_to_date:
            remove(self.fetcher.agent or self.server.agent, self.server.files)

    def _drain(self) -> None:
        """Handle the last events of workers, which may come after the server's account."""
        deadline = time.monotonic() + DRAIN_S
        while any(supervisor.joined for supervisor in self.supervisors.values()) and time.monotonic() < deadline:
            self._next()

    def _failed(self, reason: str) -> RunError:
        return RunError(reason + self.fetcher.resume_hint())

    def _interrupted(self, reason: str) -> InterruptedRunError:
        return InterruptedRunError(reason + self.fetcher.resume_hint())


def remove(agent: AgentClient, files: Iterable[str]) -> None:
    """Remove a run's files from a device.

    A device that cannot be reached keeps them until its cache is pruned.
    """
    with suppress(RemoteError):
        for path in files:
            agent.call(RemoveFile(path), REMOVE_S)
