"""A supervisor starts an order on a device, follows it to its end, and may start it again."""

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from backends.training.step_watch import PREPARING_S
from planner.agents.call import Call, Event
from planner.agents.client import AgentClient
from planner.errors import DeviceLostError, JobError, PlannerError, RunError
from planner.run.restarts import Restarts

Began = TypeVar("Began")

#: Longest wait for each of the events that an order begins with. Its agent ends itself before, and
#: tells at what, unless it is the agent that hangs: an import, the call of the job's function and
#: reading its data may each take PREPARING_S.
READY_S = 3.0 * PREPARING_S + 60.0
#: What a member whose connection has ended may take to say why: an error of the job ends the run.
LAST_WORDS_S = 2.0


@dataclass(frozen=True)
class Signals:
    """Signals between the threads of a run.

    go: the members begin.
    over: the run has ended; nobody is started again.
    events: with the names of the orders that they are of; None for an order's end.
    """

    go: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    events: queue.Queue[tuple[str, Event | None]] = field(default_factory=queue.Queue)


class MemberLost(NamedTuple):
    """A member has failed or its device is lost; it is started again."""

    reason: str


class MemberRestarted(NamedTuple):
    """A member is at work again, on a new agent."""


class Supervisor:
    """Keeps one order at work, in a thread of its own, and queues its events and its end.

    name: of its events.
    begins_with: the classes of its first events. An order with any then waits for ``Signals.go``.
    restarts: None for an order that is not started again.
    silence_s: without an event after which its device counts as lost, once it is told to go.
    on_event: called with every later event before that is queued.

    agent: which carries the order out now, or did so last.
    began: its first events by their classes, as they come.
    result, error: one of them when it has ended. They are kept and not queued: Ctrl-C may lose what
        was just taken from the queue.
    stopped_by: why it was told to end; None if it was not.
    """

    def __init__(
        self, name: str, agent: AgentClient, order: Any, signals: Signals, begins_with: Sequence[type] = (),
        restarts: Restarts | None = None, on_event: Callable[[Event], None] = lambda event: None,
        silence_s: float | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.agent = agent
        self.began: dict[type, Any] = {}
        self.result: Any = None
        self.error: PlannerError | None = None
        self.stopped_by: str | None = None
        self._order = order
        self._signals = signals
        self._begins_with = begins_with
        self._restarts = restarts
        self._on_event = on_event
        self._silence_s = silence_s
        self._reached = True  # an agent for the newest try
        self._call = agent.start(order)
        self._call_ended = threading.Event()
        threading.Thread(target=self._follow, daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether its result, or its error, is known."""
        return self.result is not None or self.error is not None

    def stop(self, reason: str) -> None:
        """Tell the order to end; a device that is lost is reported as such."""
        self.stopped_by = reason
        with suppress(DeviceLostError):
            self._call.stop()

    def end_agent(self) -> None:
        """End the agent in the background, once it could say what the order has failed with.

        The order fails with it where it has not, and may be started again.
        """
        agent, call_ended = self.agent, self._call_ended

        def end() -> None:
            call_ended.wait(LAST_WORDS_S)
            agent.close()

        threading.Thread(target=end, daemon=True).start()

    def _follow(self) -> None:
        call: Call | None = self._call
        while True:
            try:
                call = call or self._start_again()
                self.result = self._carry_out(call)
                break
            except Exception as error:  # noqa: BLE001 - an unreported end would leave the run waiting forever
                self._call_ended.set()
                if not self._tries_again(error):
                    break
                call = None
        self._signals.events.put((self.name, None))

    def _carry_out(self, call: Call) -> Any:
        """Follow the order to its result."""
        for kind in self._begins_with:
            self.began[kind] = call.first(kind, READY_S)
        if self._begins_with:
            self._signals.go.wait()
            call.go()
        return call.result(self._silence_s, self._hear)

    def _hear(self, event: Event) -> None:
        self._on_event(event)
        if self._restarts is not None:
            self._restarts.hear(event)
        self._signals.events.put((self.name, event))

    def _tries_again(self, error: Exception) -> bool:
        """Note an error, and wait before the next start if there is one."""
        over = self._signals.over
        if not isinstance(error, PlannerError):
            self.error = RunError(f"{self.agent.name}: {type(error).__name__}: {error}")
            return False
        if self._restarts is None or not self._signals.go.is_set():
            self.error = error
            return False
        if over.is_set():
            self.error = error if isinstance(error, JobError) else None  # it may be what ended the run
            return False
        self._signals.events.put((self.name, MemberLost(str(error))))
        self.agent.close()
        pause_s = self._restarts.pause_s(error, self._reached)
        if pause_s is None:
            self.error = error
            return False
        over.wait(pause_s)
        return not over.is_set()

    def _start_again(self) -> Call:
        assert self._restarts is not None, "only with them is an order started again"
        self._reached = False
        self.agent = self._restarts.new_agent()
        self._reached = True  # one that dies as the order is given has failed
        self._call_ended = threading.Event()
        self._call = self.agent.start(self._order)
        self._signals.events.put((self.name, MemberRestarted()))
        return self._call


def first_events(supervisors: Mapping[str, Supervisor], kind: type[Began]) -> dict[str, Began]:
    """The first event of this class of each order, when all have come.

    Raises the error of an order that failed before, RunError with those of several.
    """
    while any(kind not in each.began for each in supervisors.values()):
        errors = [each.error for each in supervisors.values() if each.error is not None]
        if errors:
            raise errors[0] if len(errors) == 1 else RunError("; ".join(map(str, errors)))
        time.sleep(0.02)
    return {name: each.began[kind] for name, each in supervisors.items()}
