"""A supervisor starts a member of a run, and restarts it on a new agent if it is lost."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from backends.protocol.events import MemberAccount, MemberTelemetry, Ready
from planner.agents.call import Event
from planner.agents.client import AgentClient
from planner.agents.pool import AgentPool
from planner.errors import AgentError, JobError, PlannerError, RunError
from planner.run.order_at_work import READY_S, Signals, as_planner_error, expect

#: A member is given up after so many failures in a row without a step, or so many failures to
#: reach its device.
ATTEMPTS = 5
ABSENCES = 40
LONGEST_PAUSE_S = 15.0
#: How a member says that the server ended their connection (framing.WireError).
CLOSED = "closed the connection"


class MemberLost(NamedTuple):
    """A member has failed or its device is lost; it is started again."""

    reason: str


class MemberGivenUp(NamedTuple):
    """A member is not started again."""

    reason: str


class MemberEnded(NamedTuple):
    """A member has ended normally."""

    account: MemberAccount


@dataclass
class Supervisor:
    """Keeps one member at work, in a thread of its own, until the run is over.

    beside_server: whether the member is on the server's device.
    on_start: called with its name when it is started, for the first time or again.
    restarts: whether a member that fails is started again; not where the others cannot go on
        without it.
    ready: what the member was ready to begin with; None before.
    joined: the server has let it in.
    failure: why it was given up.
    fails_run: whether that ends the run, though others may work: the user's own code has failed, or
        gives another model there.
    """

    name: str
    pool: AgentPool
    beside_server: bool
    on_start: Callable[[str], None]
    signals: Signals
    restarts: bool = True
    ready: Ready | None = field(default=None, init=False)
    joined: bool = field(default=False, init=False)
    failure: str | None = field(default=None, init=False)
    fails_run: bool = field(default=False, init=False)
    _drop_reason: str | None = field(default=None, init=False)
    _stepped: bool = field(default=False, init=False)  # since it was last started
    _ever_stepped: bool = field(default=False, init=False)
    _failures: int = field(default=0, init=False)  # in a row without a step
    _absences: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._agent = self.pool.agents[self.name]

    def start(self, order: Any) -> None:
        """Start the member, which then waits for ``Signals.go``.

        An error before that is its ``failure``: it is not started again.
        """
        threading.Thread(target=self._keep_working, args=(order,), daemon=True).start()

    def dropped(self, reason: str, unfit: bool = False) -> None:
        """The server has dropped the member, for this reason; one that is unfit fails the run."""
        self._drop_reason = reason
        if unfit:
            self.failure = f"{self.name}: {reason}"
            self.fails_run = True
        if self.joined:
            # A stopped process reports no error: end it, so that another is started.
            self.joined = False
            threading.Thread(target=self._agent.close, daemon=True).start()

    def _keep_working(self, order: Any) -> None:
        """Start the member again whenever it fails, with growing pauses, until the run is over."""
        agent: AgentClient | None = self._agent
        while not self.signals.over.is_set():
            try:
                agent = agent or self._new_agent()
                self._work_once(agent, order)
                return
            except Exception as error:  # noqa: BLE001 - an unreported end would leave the run waiting forever
                if not self._tries_again(error, agent):
                    return
                agent = None

    def _tries_again(self, error: Exception, agent: AgentClient | None) -> bool:
        """Note an error, and wait before the next attempt; no agent: the device was not reached."""
        over, events = self.signals.over, self.signals.events
        failed = as_planner_error(self.name, error)
        if self.restarts and not isinstance(error, PlannerError):
            self._give_up(str(failed))
            return False
        if self.restarts and over.is_set():
            self.joined = False  # no more events will come
            return False
        if not self.restarts or not self.signals.go.is_set():
            self.joined = False
            self.failure = str(failed)
            events.put((self.name, None))  # ends the wait for the next event
            return False
        events.put((self.name, MemberLost(str(failed))))
        if agent is None:
            self._absences += 1
        else:
            self._failures, self._absences = (1 if self._stepped else self._failures + 1), 0
            agent.close()
        if self._is_hopeless(failed):
            self._give_up(self._cause(failed))
            return False
        over.wait(min(2.0 ** (self._failures + self._absences), LONGEST_PAUSE_S))
        return True

    def _is_hopeless(self, error: PlannerError) -> bool:
        """Whether it would fail again."""
        self.fails_run |= isinstance(error, JobError)  # the user wants to mend it
        never_worked = isinstance(error, AgentError) and not self._ever_stepped
        return never_worked or self.fails_run or self._failures == ATTEMPTS or self._absences == ABSENCES

    def _give_up(self, reason: str) -> None:
        self.failure = reason
        self.signals.events.put((self.name, MemberGivenUp(reason)))

    def _cause(self, error: PlannerError) -> str:
        """Why the member failed: the server's reason, where that closed the connection."""
        if self._drop_reason is not None and str(error).endswith(CLOSED):
            return f"{self.name}: {self._drop_reason}"
        return str(error)

    def _new_agent(self) -> AgentClient:
        # Reopening would close the connection that the server on this device uses.
        return self.pool.another(self.name) if self.beside_server else self.pool.reopen(self.name)

    def _work_once(self, agent: AgentClient, order: Any) -> None:
        self.on_start(self.name)
        self.joined = self._stepped = False
        self._agent = agent
        call = agent.start(order)
        self.ready = expect(call, Ready)
        self.signals.go.wait()
        call.go()
        account: MemberAccount = call.result(on_event=self._hear)
        self.signals.events.put((self.name, MemberEnded(account)))

    def _hear(self, event: Event) -> None:
        if isinstance(event, MemberTelemetry):
            self._stepped = event.spent.steps > 0
            self._ever_stepped |= self._stepped
        self.signals.events.put((self.name, event))


def wait_until_ready(supervisors: Mapping[str, Supervisor]) -> dict[str, Ready]:
    """What the members are ready with. Raises RunError where one fails or is late."""
    deadline = time.monotonic() + READY_S
    while late := sorted(name for name, supervisor in supervisors.items() if supervisor.ready is None):
        failures = [each.failure for each in supervisors.values() if each.failure is not None]
        if failures:
            raise RunError("; ".join(failures))
        if time.monotonic() > deadline:
            raise RunError(f"{', '.join(late)}: not ready within {READY_S:g} s")
        time.sleep(0.02)
    return {name: each.ready for name, each in supervisors.items() if each.ready is not None}
