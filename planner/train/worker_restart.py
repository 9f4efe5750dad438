"""What keeps a worker alive: a worker that fails or is lost is started again, on an agent that it comes back with."""

import queue
import threading
from typing import NamedTuple, TypeVar

from backends.protocol.codec import record
from backends.protocol.events import MemberAccount, Ready
from backends.protocol.orders import RunPeer, RunWorker
from planner.agents.client import AgentClient, Call, Event
from planner.agents.pool import AgentPool
from planner.errors import AgentError, PlannerError, RunError
from planner.train.events import MemberEnded, MemberGivenUp, MemberLost
from planner.train.telemetry import Telemetry

Awaited = TypeVar("Awaited")

READY_S = 300.0
#: A worker that fails this often in a row without making a step, or is not reached this often, is given up.
ATTEMPTS = 5
ABSENCES = 40
LONGEST_PAUSE_S = 15.0
#: How a worker says that the server ended their connection (wire.WireError).
CLOSED = "closed the connection"


class Signals(NamedTuple):
    """Between the threads of a run: the word to begin, its end, and what happens, with who says so."""

    go: threading.Event
    over: threading.Event
    events: queue.Queue[tuple[str, Event]]


class WorkerSupervisor:
    """Keeps one worker going, in a thread of its own, until the run is over.

    ``ready``: it has been ready to begin; ``joined``: the server has it; ``failure``: why it was given up.
    """

    def __init__(
        self,
        name: str,
        crew: AgentPool,
        beside_server: bool,
        telemetry: Telemetry,
        signals: Signals,
    ) -> None:
        self._name = name
        self._crew = crew
        self._beside_server = beside_server
        self._telemetry = telemetry
        self._signals = signals
        self._agent = crew.agents[name]
        self.ready = False
        self.joined = False
        self.failure: str | None = None
        self._dropped_for: str | None = None

    def start(self, order: RunWorker | RunPeer) -> None:
        """Start the worker; its first life waits for the word to begin, and what prevents it is its ``failure``."""
        threading.Thread(target=self._keep_working, args=(order,), daemon=True).start()

    def dropped(self, reason: str) -> None:
        """The server has dropped the worker, and says why."""
        self._dropped_for = reason
        if self.joined:
            # A stopped process would never say so itself: end it, and another is started.
            self.joined = False
            threading.Thread(target=self._agent.close, daemon=True).start()

    def _keep_working(self, order: RunWorker | RunPeer) -> None:
        """Until the run is over, what dies is started again, with growing pauses."""
        name, over = self._name, self._signals.over
        agent: AgentClient | None = self._agent
        failures = absences = 0
        while not over.is_set():
            try:
                if agent is None:
                    agent = self._come_back()
                self._work_once(agent, order)
                return
            except PlannerError as error:
                if over.is_set():
                    self.joined = False  # it has nothing more to say
                    return
                if not self._signals.go.is_set():
                    self.failure = str(error)
                    return
                self._signals.events.put((name, MemberLost(str(error))))
                if agent is None:
                    absences += 1
                else:
                    failures, absences = (1 if self._telemetry.stepped(name) else failures + 1), 0
                    agent.close()
                    agent = None
                hopeless = isinstance(error, AgentError) and not self._telemetry.ever_stepped(name)
                if hopeless or failures == ATTEMPTS or absences == ABSENCES:
                    self._give_up(self._cause(error))
                    return
                over.wait(min(2.0 ** (failures + absences), LONGEST_PAUSE_S))
            except Exception as error:  # noqa: BLE001 - a keeper that ended unseen would leave the run waiting for ever
                self._give_up(f"{name}: {type(error).__name__}: {error}")
                return

    def _give_up(self, reason: str) -> None:
        self.failure = reason
        self._signals.events.put((self._name, MemberGivenUp(reason)))

    def _cause(self, error: PlannerError) -> str:
        """A worker that the server sends away is not told why."""
        if self._dropped_for is not None and str(error).endswith(CLOSED):
            return f"{self._name}: {self._dropped_for}"
        return str(error)

    def _come_back(self) -> AgentClient:
        # The server's own connection must not be touched by its host's worker.
        return self._crew.another(self._name) if self._beside_server else self._crew.reopen(self._name)

    def _work_once(self, agent: AgentClient, order: RunWorker | RunPeer) -> None:
        name, events = self._name, self._signals.events
        self._telemetry.begin_life(name)
        self.joined = False
        self._agent = agent
        call = agent.start(order)
        expect(call, Ready)
        self.ready = True
        self._signals.go.wait()
        call.go()
        result = call.result(on_event=lambda event: events.put((name, event)))
        events.put((name, MemberEnded(record(MemberAccount, result))))


def expect(call: Call, kind: type[Awaited]) -> Awaited:
    """The order's first event, of this class, within READY_S.

    Raises what the order failed with instead, else RunError.
    """
    event = call.event(READY_S)
    if isinstance(event, kind):
        return event
    if call.ended:
        call.result()
    raise RunError(f"`{call.name}` was not ready within {READY_S:g} s")
