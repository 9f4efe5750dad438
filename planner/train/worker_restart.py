"""A worker that fails or is lost is started again, on a new agent of its device."""

import queue
import threading
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from backends.protocol.events import MemberAccount, Ready
from backends.training.run_orders import RunPeer, RunRank, RunWorker
from planner.agents.call import Call, Event
from planner.agents.client import AgentClient
from planner.agents.pool import AgentPool
from planner.errors import AgentError, JobError, PlannerError, RunError
from planner.train.events import MemberEnded, MemberGivenUp, MemberLost
from planner.train.telemetry import Telemetry

Awaited = TypeVar("Awaited")

READY_S = 300.0
#: A worker is given up after so many failures in a row without a step, or so many failures to
#: reach its device.
ATTEMPTS = 5
ABSENCES = 40
LONGEST_PAUSE_S = 15.0
#: How a worker says that the server ended their connection (framing.WireError).
CLOSED = "closed the connection"


class Signals(NamedTuple):
    """Signals between the threads of a run.

    go: the members begin.
    over: the run has ended.
    events: with their sources.
    """

    go: threading.Event
    over: threading.Event
    events: queue.Queue[tuple[str, Event]]


@dataclass
class WorkerSupervisor:
    """Restarts one worker, in a thread of its own, until the run is over.

    beside_server: whether the worker is on the server's device.
    ready: what the worker was ready to begin with; None before.
    joined: the server has let it in.
    failure: why it was given up.
    fails_run: whether that ends the run, though others may work: the user's own code has failed, or
        gives another model there.
    """

    name: str
    pool: AgentPool
    beside_server: bool
    telemetry: Telemetry
    signals: Signals
    ready: Ready | None = field(default=None, init=False)
    joined: bool = field(default=False, init=False)
    failure: str | None = field(default=None, init=False)
    fails_run: bool = field(default=False, init=False)
    _drop_reason: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._agent = self.pool.agents[self.name]

    def start(self, order: RunWorker | RunPeer | RunRank) -> None:
        """Start the worker, which then waits for ``Signals.go``.

        An error before that is its ``failure``: it is not started again.
        """
        threading.Thread(target=self._keep_working, args=(order,), daemon=True).start()

    def dropped(self, reason: str, unfit: bool = False) -> None:
        """The server has dropped the worker, for this reason; one that is unfit fails the run."""
        self._drop_reason = reason
        if unfit:
            self.failure = f"{self.name}: {reason}"
            self.fails_run = True
        if self.joined:
            # A stopped process reports no error: end it, so that another is started.
            self.joined = False
            threading.Thread(target=self._agent.close, daemon=True).start()

    def _keep_working(self, order: RunWorker | RunPeer | RunRank) -> None:
        """Start the worker again whenever it fails, with growing pauses, until the run is over."""
        name, over = self.name, self.signals.over
        agent: AgentClient | None = self._agent
        failures = absences = 0
        while not over.is_set():
            try:
                if agent is None:
                    agent = self._new_agent()
                self._work_once(agent, order)
                return
            except PlannerError as error:
                if over.is_set():
                    self.joined = False  # no more events will come
                    return
                if not self.signals.go.is_set():
                    self.failure = str(error)
                    return
                self.signals.events.put((name, MemberLost(str(error))))
                if agent is None:
                    absences += 1
                else:
                    failures, absences = (1 if self.telemetry.stepped(name) else failures + 1), 0
                    agent.close()
                    agent = None
                hopeless = isinstance(error, AgentError) and not self.telemetry.ever_stepped(name)
                if isinstance(error, JobError):  # it would fail again, and the user wants to mend it
                    self.fails_run = True
                if hopeless or self.fails_run or failures == ATTEMPTS or absences == ABSENCES:
                    self._give_up(self._cause(error))
                    return
                over.wait(min(2.0 ** (failures + absences), LONGEST_PAUSE_S))
            except Exception as error:  # noqa: BLE001 - an unreported end would leave the run waiting forever
                self._give_up(f"{name}: {type(error).__name__}: {error}")
                return

    def _give_up(self, reason: str) -> None:
        self.failure = reason
        self.signals.events.put((self.name, MemberGivenUp(reason)))

    def _cause(self, error: PlannerError) -> str:
        """Why the worker failed: the server's reason, where that closed the connection."""
        if self._drop_reason is not None and str(error).endswith(CLOSED):
            return f"{self.name}: {self._drop_reason}"
        return str(error)

    def _new_agent(self) -> AgentClient:
        # Reopening would close the connection that the server on this device uses.
        return self.pool.another(self.name) if self.beside_server else self.pool.reopen(self.name)

    def _work_once(self, agent: AgentClient, order: RunWorker | RunPeer | RunRank) -> None:
        name, events = self.name, self.signals.events
        self.telemetry.started(name)
        self.joined = False
        self._agent = agent
        call = agent.start(order)
        self.ready = expect(call, Ready)
        self.signals.go.wait()
        call.go()
        account: MemberAccount = call.result(on_event=lambda event: events.put((name, event)))
        events.put((name, MemberEnded(account)))


class RankSupervisor(WorkerSupervisor):
    """Watches one rank. It is not started again: the others cannot go on without it."""

    def _keep_working(self, order: RunWorker | RunPeer | RunRank) -> None:
        try:
            self._work_once(self._agent, order)
        except PlannerError as error:
            self.joined = False  # no more events will come
            self.failure = str(error)
        except Exception as error:  # noqa: BLE001 - an unreported end would leave the run waiting forever
            self.failure = f"{self.name}: {type(error).__name__}: {error}"
        self.signals.events.put((self.name, None))  # ends the wait for the next event


def expect(call: Call, kind: type[Awaited]) -> Awaited:
    """The order's first event, which is to be of this class and to come within READY_S.

    Raises the error that the order failed with, else RunError.
    """
    event = call.event(READY_S)
    if isinstance(event, kind):
        return event
    if call.ended:
        call.result()
    raise RunError(f"`{call.name}` was not ready within {READY_S:g} s")
