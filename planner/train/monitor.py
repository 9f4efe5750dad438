"""What watches over a run that has begun, until its server's account is here and the result is home."""

import math
import queue
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from backends.protocol.codec import record
from backends.protocol.events import CheckpointFailed, CheckpointWritten, Dropped, Evaluated, Joined, RunAccount
from backends.protocol.orders import RemoveFile
from backends.training.run_spec import STOPPED
from planner.agents.client import TICK_S, AgentClient, Call, Event
from planner.errors import DeviceLostError, InterruptedRunError, PlannerError, RemoteError, RunError
from planner.train.checkpoint_fetch import CheckpointFetcher
from planner.train.event_log import EventReporter
from planner.train.events import MemberEnded, MemberLost, RunEnded, Stopping, TimeOver
from planner.train.telemetry import Telemetry
from planner.train.worker_restart import Signals, WorkerSupervisor

STOP_S = 60.0
DRAIN_S = 5.0
REMOVE_S = 10.0


class ServerProcess(NamedTuple):
    """The server at work: what it is called, the device it is on, its agent, its order, and its files' paths there.

    holds_up: whether the whole cluster waits for an evaluation.
    """

    called: str
    device: str
    agent: AgentClient
    call: Call
    files: tuple[str, ...]
    holds_up: bool = False


class RunMonitor:
    """Handles what happens in a run. A cluster of one device has no keepers."""

    def __init__(
        self,
        server: ServerProcess,
        keepers: Mapping[str, WorkerSupervisor],
        courier: CheckpointFetcher,
        telemetry: Telemetry,
        journal: EventReporter,
        signals: Signals,
    ) -> None:
        self._server = server
        self._keepers = keepers
        self._courier = courier
        self._telemetry = telemetry
        self._journal = journal
        self._signals = signals
        self._account: RunAccount | None = None
        self._error: PlannerError | None = None
        self._lasted = False
        self._held_up_s = 0.0

    def run(self, lasting_s: float = math.inf) -> RunAccount:
        """Watch until the last step, or for so long; returns the server's account.

        Evaluations that hold up the cluster do not count, as in the time of the result. Raises RunError,
        InterruptedRunError on Ctrl-C.
        """
        threading.Thread(target=self._listen, daemon=True).start()
        end_s = time.monotonic() + lasting_s
        stop_by: float | None = None
        while True:
            try:
                if time.monotonic() > end_s + self._held_up_s:
                    end_s = math.inf
                    self._enough()
                if stop_by is not None and time.monotonic() > stop_by:
                    raise self._interrupted(f"the server did not stop within {STOP_S:g} s")
                account = self._next()
                if account is not None:
                    self._signals.over.set()
                    return self._end(account, interrupted=stop_by is not None)
                if stop_by is None:
                    self._check_workers()
            except KeyboardInterrupt:
                if stop_by is not None or self._signals.over.is_set():
                    if self._account is not None and self._is_home(self._account):
                        return self._account
                    raise self._interrupted("stopped at once") from None
                self._journal.report("planner", Stopping())
                stop_by = time.monotonic() + STOP_S
                with suppress(DeviceLostError):  # a server that is gone is reported as such
                    self._server.call.stop()

    def _enough(self) -> None:
        self._lasted = True
        self._signals.over.set()  # who is cut off in the middle of something is not started again
        self._journal.report("planner", TimeOver())
        with suppress(DeviceLostError):  # a server that is gone is reported as such
            self._server.call.stop()

    def _listen(self) -> None:
        """What the server comes to is kept, not queued: Ctrl-C may lose what was just taken from the queue."""
        source, events = self._server.called, self._signals.events

        def heard(event: Event) -> None:
            if isinstance(event, CheckpointWritten):  # here, for the same reason
                self._courier.bring(event.path)
            events.put((source, event))

        try:
            self._account = record(RunAccount, self._server.call.result(on_event=heard))
        except PlannerError as error:
            self._error = error
        except Exception as error:  # noqa: BLE001 - a listener that ended unseen would leave the run waiting for ever
            self._error = RunError(f"{self._server.device}: {type(error).__name__}: {error}")
        events.put((source, None))  # wakes who waits for the next event

    def _next(self) -> RunAccount | None:
        """Handle one event; the account after the last. Raises RunError where the server has failed."""
        account, error = self._account, self._error  # before the queue, in which all that came earlier is by now
        with suppress(queue.Empty):
            source, event = self._signals.events.get(timeout=TICK_S)
            if event is not None:
                self._handle(source, event)
                self._journal.report(source, event)
            if not self._signals.events.empty():
                return None
        if error is not None:
            raise self._server_failed(error)
        return account

    def _handle(self, source: str, event: Event) -> None:
        self._telemetry.add(source, event)
        if isinstance(event, Joined):
            self._keepers[event.member].joined = True
        elif isinstance(event, MemberEnded | MemberLost):
            self._keepers[source].joined = False
        elif isinstance(event, Dropped):
            self._keepers[event.member].dropped(event.reason)
        elif isinstance(event, Evaluated) and self._server.holds_up:
            self._held_up_s += event.seconds
        elif isinstance(event, CheckpointFailed):
            self._courier.unsaved = event.reason

    def _check_workers(self) -> None:
        """Raises RunError where all workers have been given up."""
        failures = [keeper.failure for keeper in self._keepers.values() if keeper.failure is not None]
        if failures and len(failures) == len(self._keepers):
            self._tidy()
            raise self._failed("; ".join(failures))

    def _server_failed(self, error: PlannerError) -> RunError:
        self._courier.wait()
        self._tidy()
        if isinstance(error, DeviceLostError):
            return self._failed(f"the server on {self._server.device} is lost: {error}")
        return self._failed(str(error))

    def _end(self, account: RunAccount, interrupted: bool) -> RunAccount:
        self._courier.finish()
        self._drain()
        self._journal.report("planner", RunEnded(account))
        self._tidy()
        lasted = self._lasted and not interrupted and account.reason == STOPPED
        if self._is_home(account) or lasted:
            return account
        where = f"after step {account.done} of {account.total}"
        if account.finished:
            raise self._failed(f"the trained weights could not be saved: {self._courier.unsaved}")
        if interrupted:
            raise self._interrupted(f"stopped {where}")
        raise self._failed(f"{account.reason or 'the server ended early'} {where}")

    def _is_home(self, account: RunAccount) -> bool:
        """Whether the run has been trained to its end and its weights are here."""
        return bool(account.finished) and self._courier.has(account.done)

    def _tidy(self) -> None:
        """Remove the run's files over there once what the server wrote last is here."""
        if self._courier.home:
            remove(self._courier.agent or self._server.agent, self._server.files)

    def _drain(self) -> None:
        """The workers' last windows may come after the server's account."""
        deadline = time.monotonic() + DRAIN_S
        while any(keeper.joined for keeper in self._keepers.values()) and time.monotonic() < deadline:
            self._next()

    def _failed(self, reason: str) -> RunError:
        return RunError(reason + self._courier.saved())

    def _interrupted(self, reason: str) -> InterruptedRunError:
        return InterruptedRunError(reason + self._courier.saved())


def remove(agent: AgentClient, files: Iterable[str]) -> None:
    """Remove a run's files from a device; one that is gone by now keeps them until its cache is pruned."""
    with suppress(RemoteError):
        for path in files:
            agent.call(RemoveFile(path), REMOVE_S)
