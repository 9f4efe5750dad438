"""A run's host is in one thread and its members in others, with real sockets between them."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from backends.hosting.run_host import RunHost
from backends.network import framing
from backends.network.heartbeat import HeartbeatSender
from backends.protocol.events import RunAccount, Silent
from backends.training import checkpoint
from backends.training.run_spec import RunSpec
from planner.agents.certificates import Authority
from tests.running import HANG_S, until

Event = TypeVar("Event")

#: Heartbeats come every fifth of it.
BEAT_LIMIT_S = 1.0


class HostedRun:
    """A host in a thread, with its certificates, events and account."""

    def __init__(self, kind: type[RunHost], spec: RunSpec) -> None:
        self.spec = spec
        self.authority = Authority()
        self.events: list[Any] = []
        self._changed = threading.Condition()
        self.stopping = threading.Event()
        self.host = kind(spec, self.authority.identity(framing.SERVER), self._emit)
        listener = framing.listen("127.0.0.1")
        self.port = listener.getsockname()[1]
        self._account: RunAccount | None = None
        self._thread = threading.Thread(target=self._run, args=(listener,), daemon=True)
        self._thread.start()

    def _run(self, listener: Any) -> None:
        with suppress(ArithmeticError):  # of a test whose host fails
            self._account = self.host.run(listener, self.stopping.is_set)

    def _emit(self, event: Any) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def emitted(self, kind: type[Event]) -> list[Event]:
        """The events of one class so far."""
        return [event for event in list(self.events) if isinstance(event, kind)]

    def members(self, kind: type[Any]) -> list[str]:
        """The members that the events of one class name."""
        return [event.member for event in self.emitted(kind)]

    def await_event(self, kind: type[Any], count: int = 1) -> None:
        with self._changed:
            happened = self._changed.wait_for(lambda: len(self.emitted(kind)) >= count, HANG_S)
            assert happened, (kind, self.events)

    def await_steps(self, count: int) -> None:
        queue = self.host.run_state.step_queue
        with queue.lock:
            assert queue.lock.wait_for(lambda: queue.done >= count, HANG_S), f"{queue.done} steps"

    def await_heartbeat(self, name: str) -> None:
        """Wait for the next heartbeat of a member."""
        heard_s = self.host.silent_members.heartbeats.heard_s
        before = heard_s[name]
        until(lambda: heard_s[name] > before, lambda: f"no heartbeat of {name}")

    def fall_silent(self, name: str) -> None:
        """Make the host believe that it has not heard of a member for long, until it says so."""
        with self._changed:
            while name not in self.members(Silent):
                self.host.silent_members.heartbeats.heard_s[name] = -1e9
                self._changed.wait(0.05)

    def account(self) -> RunAccount:
        self._thread.join(HANG_S)
        assert not self._thread.is_alive(), "the host hangs"
        assert self._account is not None, "the host has failed"
        return self._account

    def saved(self) -> checkpoint.Checkpoint:
        """The last checkpoint, when the run is over."""
        self.account()
        return checkpoint.read(str(self.spec.checkpoints.path))

    def connect(self, name: str, authority: Authority | None = None) -> framing.Connection:
        tls = framing.context((authority or self.authority).identity(name), server_side=False)
        return framing.connect("127.0.0.1", self.port, tls, HANG_S)

    def heartbeat(
        self,
        name: str,
        on_lost: Callable[[str], None] = lambda _: None,
        on_answer: Callable[[int], None] = lambda _: None,
    ) -> HeartbeatSender:
        """Frequent heartbeats that are lost only with the host, however busy the machine is."""
        connection = self.connect(name)
        made = HeartbeatSender(connection, BEAT_LIMIT_S, on_lost, on_answer)
        connection.settimeout(HANG_S)
        return made


class MemberThread(threading.Thread):
    """A member that takes part in a thread, to the end or until it fails."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.failure: str | None = None

    def run(self) -> None:
        try:
            self.take_part()
        except Exception as error:  # noqa: BLE001 - a test that waits for its end reports any failure
            self.failure = f"{type(error).__name__}: {error}"

    def take_part(self) -> None:
        raise NotImplementedError

    def await_end(self) -> None:
        self.join(HANG_S)
        assert not self.is_alive() and self.failure is None, self.failure or f"{type(self).__name__} hangs"
