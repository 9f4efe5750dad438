"""A monitor handles a run's events until its account and its last checkpoint have arrived."""

import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from backends.protocol.events import (
    CheckpointFailed,
    Dropped,
    Evaluated,
    Joined,
    Left,
    Progress,
    RunAccount,
    Saving,
)
from backends.training.run_spec import STOPPED
from backends.training.stopping import EARLY_ENDS
from planner.agents.call import Event
from planner.errors import InterruptedRunError, RunError
from planner.run.life import Life
from planner.run.supervisor import MemberLost, Signals, Supervisor
from planner.train.checkpoint_fetch import CheckpointFetcher
from planner.train.event_log import EventReporter
from planner.train.events import MemberEnded, MemberGivenUp, RunEnded, Stopping, TimeOver
from planner.train.run_failure import RunFailure
from planner.train.telemetry import MemberReports

STOP_S = 60.0
DRAIN_S = 5.0


class ServerProcess(NamedTuple):
    """The host of a run at work.

    files: the paths of the run's files on its device.
    evaluation_stops_all: whether the whole cluster waits for an evaluation.
    needs_all: whether the run ends with the first member that is lost.
    """

    order: Supervisor
    files: tuple[str, ...]
    evaluation_stops_all: bool = False
    needs_all: bool = False


class RunMonitor(Life[RunAccount]):
    """Handles the events of a run.

    members: by name, those that are not the host as well. Members that are lost are started again,
        unless the run needs them all.
    problems: of a run that has ended as it should: why its weights are not in its folder.
    """

    stop_s = STOP_S

    def __init__(
        self, server: ServerProcess, members: Mapping[str, Supervisor], fetcher: CheckpointFetcher,
        reports: Mapping[str, MemberReports], reporter: EventReporter, signals: Signals,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        super().__init__(signals, clock)
        self._server = server
        self._members = members
        self._fetcher = fetcher
        self._reports = reports
        self._reporter = reporter
        self._order = server.order
        self.orders[server.order.name] = server.order
        self._end_s = math.inf
        self._time_is_over = False
        self.problems: list[str] = []
        self._cause: str | None = None  # of its failure, once the host has been told to stop
        self._done: int | None = None  # steps, as the host last told
        self._joined: set[str] = set()  # members that the server has let in
        self._failure = RunFailure(server.order.agent.name, members, server.needs_all, clock)

    def run(self, lasting_s: float = math.inf) -> RunAccount:
        """Watch until the last step, or for ``lasting_s``; returns the server's account.

        Evaluations that stop the whole cluster do not count, as in the time of the result.
        Raises RunError, and InterruptedRunError on Ctrl-C.
        """
        self._end_s = self.clock() + lasting_s
        return self.watch()

    def handle(self, source: str, event: Event | None) -> None:
        told = self._end_of_member(source) if event is None else event
        if told is None:
            return
        member = told.member if isinstance(told, Left) else source
        if member in self._reports:
            self._reports[member].add(told)
        self._failure.hear(told)
        if isinstance(told, Joined) and told.member in self._members:  # the first rank is a member and the host
            self._joined.add(told.member)
        elif isinstance(told, MemberLost):
            self._joined.discard(source)
        elif isinstance(told, Dropped) and told.member in self._joined:
            # A stopped process reports no error: end it, so that another is started.
            self._joined.discard(told.member)
            self._members[told.member].end_agent()
        elif isinstance(told, Evaluated) and self._server.evaluation_stops_all:
            self._end_s += told.seconds
        elif isinstance(told, Progress):
            self._done = told.done
        elif isinstance(told, Saving):
            self.wait_on()
        elif isinstance(told, CheckpointFailed):
            self._fetcher.unsaved = told.reason
        self._reporter.report(source, told)

    def _end_of_member(self, source: str) -> Event | None:
        """How a member has ended; None for the host, and where that ends the run."""
        self._joined.discard(source)
        if source not in self._members:
            return None
        if self._members[source].result is not None:
            return MemberEnded(self._members[source].result)
        reason = self._failure.of_member(source)
        return None if reason is None or self._server.needs_all else MemberGivenUp(reason)

    def outcome(self, ended: bool) -> RunAccount | None:
        if ended and self._order.error is None:
            self.signals.over.set()
            return self._end(self._order.result)
        host_error = self._order.error if ended else None
        reason = None if self.interrupted and host_error is None else self._failure.reason(host_error)
        if reason is not None and self._cause is None:
            self._fail(reason)
        if self._cause is not None and host_error is not None:
            self._take_home()
            raise self._failed(self._cause)
        if not self._time_is_over and self.clock() > self._end_s:
            self._time_is_over = True
            self.signals.over.set()  # a worker that is cut off now is not started again
            self._reporter.report("planner", TimeOver())
            self._order.stop("the time is over")
        return None

    def _fail(self, cause: str) -> None:
        """End the run as Ctrl-C does: its host saves what has been trained, which is fetched."""
        self._cause = cause
        self.signals.over.set()
        if self._server.needs_all:
            for member in self._members.values():
                if member.error is not None:
                    member.end_agent()  # the others, which wait for it in an exchange, see its end
        self.stop(cause)

    def say_stopping(self) -> None:
        self._reporter.report("planner", Stopping())

    def late(self) -> RunAccount:
        self._take_home()
        late = f"the server did not stop within {STOP_S:g} s"
        raise self._interrupted(late) if self._cause is None else self._failed(f"{self._cause}; {late}")

    def at_once(self) -> RunAccount:
        done: RunAccount | None = self._order.result
        if done is not None and self._is_saved(done):
            return done
        raise self._interrupted("; ".join([*filter(None, [self._cause]), "stopped at once"])) from None

    def _end(self, account: RunAccount) -> RunAccount:
        self._done = account.done
        self._fetcher.finish()
        self._drain()
        self._reporter.report("planner", RunEnded(account))
        self._remove_files()
        timed = self._time_is_over and not self.interrupted and account.reason == STOPPED
        fault = self._failure.of_streams(account)
        if account.finished or timed or (account.reason in EARLY_ENDS and fault is None):
            if not timed and not self._fetcher.has(account.done):
                unsaved = self._fetcher.unsaved + self._fetcher.resume_hint(account.done)
                self.problems.append(f"the trained weights could not be saved: {unsaved}")
            return account
        where = f"after step {account.done} of {account.total}"
        if fault is not None:
            raise self._failed(f"{where} no more samples arrive: {fault}")
        if self.interrupted:
            raise self._interrupted(f"stopped {where}")
        cause = self._cause or self._failure.reason(None)
        raise self._failed(f"{cause}; stopped {where}" if cause else f"{where}: {account.reason}")

    def _is_saved(self, account: RunAccount) -> bool:
        """Whether the run has been trained to its end and its weights are in the run folder."""
        return bool(account.finished) and self._fetcher.has(account.done)

    def _take_home(self) -> None:
        """Fetch what the host has saved, and leave nothing there."""
        self._fetcher.finish()
        self._remove_files()

    def _remove_files(self) -> None:
        """Remove the run's files from the server's device once its last checkpoint is here."""
        if self._fetcher.up_to_date:
            self._fetcher.remove(self._order.agent, self._server.files)

    def _drain(self) -> None:
        """Handle the last events of workers, which may come after the server's account."""
        deadline = time.monotonic() + DRAIN_S
        while self._joined and time.monotonic() < deadline:
            self.take()

    def _failed(self, reason: str) -> RunError:
        return RunError(reason + self._fetcher.resume_hint(self._done))

    def _interrupted(self, reason: str) -> InterruptedRunError:
        return InterruptedRunError(reason + self._fetcher.resume_hint(self._done))
