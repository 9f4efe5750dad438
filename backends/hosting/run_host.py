"""The host of a run admits members, serves each its work items, and accounts for the run.

``silent_members`` drops those whose heartbeats stop.
"""

import abc
import socket
import threading
import time
from typing import Any, Callable, Optional, Set, Type

from backends.hosting.member_stats import MemberStats
from backends.hosting.run_clock import PROGRESS_INTERVAL_S
from backends.hosting.run_state import RunState
from backends.hosting.silent_members import SilentMembers
from backends.network import framing
from backends.network.acceptor import Acceptor
from backends.protocol.events import Dropped, Joined, Left, Replaced, RunAccount, Saving
from backends.protocol.frames import FINISH, Finish
from backends.protocol.member_specs import Identity
from backends.protocol.stream_statistics import StreamEnd
from backends.training.run_spec import STOPPED, Unfit
from backends.training.stopping import STREAMS_ENDED

#: Seconds that members may take to end a step and read that the run is over.
FINISH_LIMIT_S = 4.0
#: Seconds that members may take to hand over their states, while their heartbeats arrive.
HAND_OVER_LIMIT_S = 40.0


class HostedRunState(RunState):
    """The state of a run whose members join and leave over the network."""

    @abc.abstractmethod
    def take(self, name: str, gone: Callable[[], bool]) -> Any:
        """A member's next work item; blocks until it may begin it. gone: whether it is lost."""

    @abc.abstractmethod
    def leave(self, name: str, lost: bool) -> None:
        """Remove a member; lost: before the run told it to finish."""

    @abc.abstractmethod
    def hands_over(self, name: str) -> bool:
        """Whether a member that finishes hands over its state."""


class RunHost(abc.ABC):
    """Serves one run. The work of a member that is dropped goes to the others (``leave``).

    run_state: decides which member does what next, and emits the run's events.
    hello: what members introduce themselves with.
    """

    hello: Type[Any]
    run_state: HostedRunState

    def __init__(self, run_state: HostedRunState, identity: Identity) -> None:
        self.run_state = run_state
        self.spec = run_state.spec
        self._tls = framing.context(identity, server_side=True)
        self._emit = run_state.emit
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._members = run_state.members
        self.silent_members = SilentMembers(self.spec.heartbeat_s, self._members, self._abort, self._emit)
        self._left: Set[str] = set()  # those at whom no more samples arrive

    @abc.abstractmethod
    def _introduce(self, connection: framing.Connection, member: MemberStats, hello: Any) -> None:
        """Let a member join. Raises Unfit where its model differs from the run's."""

    @abc.abstractmethod
    def _carry_out(self, member: MemberStats, connection: framing.Connection, item: Any) -> Optional[StreamEnd]:
        """Have a member do a work item, other than FINISH, and record its answer.

        Returns why the member leaves, where no more samples arrive there; else None.
        """

    @abc.abstractmethod
    def _receive_last_state(self, member: MemberStats, connection: framing.Connection, item: Any) -> None:
        """Receive what a member hands over at the end of the run."""

    def run(self, listener: socket.socket, should_stop: Callable[[], bool]) -> RunAccount:
        """Serve until all steps are done, training diverges or ``should_stop``.

        Closes the listener and returns the run's account.
        """
        self.run_state.clock.begin()
        cpu_s = time.process_time()
        acceptor = Acceptor(
            listener, self._tls, self.spec.heartbeat_s, self.hello, self._serve, self._on_heartbeat, self._emit
        )
        with self.run_state.saved_on_failure():
            while not self.run_state.step_queue.wait(min(PROGRESS_INTERVAL_S, self.spec.heartbeat_s / 4.0)):
                self.run_state.show_progress()
                self.run_state.save_in_time()
                self.silent_members.drop()
                if should_stop():
                    self.run_state.stop(STOPPED)
        self.run_state.clock.end()
        self._over.set()
        acceptor.close()
        self._drain()
        return self.run_state.end(time.process_time() - cpu_s)

    def _drain(self) -> None:
        """Let members read that the run is over, then end their connections and threads."""
        self._await_departures()
        for member in list(self._members.values()):
            self._abort(member.connection)
        self._await_departures()

    def _await_departures(self) -> None:
        handing_over = any(self.run_state.hands_over(name) for name in list(self._members))
        deadline = time.monotonic() + (HAND_OVER_LIMIT_S if handing_over else FINISH_LIMIT_S)
        if handing_over:
            self._emit(Saving())
        while time.monotonic() < deadline and any(each.connection for each in list(self._members.values())):
            self.silent_members.drop()
            time.sleep(0.01)

    def _on_heartbeat(self, name: str) -> int:
        self.silent_members.heartbeats.hear(name)
        return self.run_state.step_queue.required_epoch

    def _abort(self, connection: Optional[framing.Connection]) -> None:
        """End a connection, so that its thread stops waiting."""
        if connection is not None:
            connection.abort()
            self.run_state.step_queue.wake()

    def _serve(self, connection: framing.Connection, hello: Any) -> None:
        member, lost = self._admit(connection), False
        with member.serving:
            try:
                self._introduce(connection, member, hello)
                connection.settimeout(None)  # a step may take long; heartbeats detect a lost member
                self._emit(Joined(connection.peer))
                while self._serve_item(member, connection):
                    pass
            except (framing.WireError, ValueError, MemoryError) as error:
                lost = self._report_loss(member, connection, error)
            finally:
                self._remove(member, connection, lost)

    def _serve_item(self, member: MemberStats, connection: framing.Connection) -> bool:
        """Give a member its next work item; return False when there are no more."""
        name = connection.peer
        item = self.run_state.take(name, lambda: connection.aborted)
        if item.kind == FINISH:
            hand_over = self.run_state.hands_over(name)
            connection.send(Finish(hand_over))
            if hand_over:
                self._receive_last_state(member, connection, item)
        else:
            leaves = self._carry_out(member, connection, item)
            if leaves is not None and not self._is_last(name, leaves):
                connection.send(Finish(False))
                return False
        member.count_bytes(connection)
        return bool(item.kind != FINISH)

    def _is_last(self, name: str, end: StreamEnd) -> bool:
        """Record that a member leaves. The last one stays until it has handed over everything."""
        self._emit(Left(name, *end))
        with self._lock:
            self._left.add(name)
            is_last = len(self._left) >= max(self.spec.members, len(self._members))
        if is_last:
            self.run_state.stop(STREAMS_ENDED)
        return is_last

    def _admit(self, connection: framing.Connection) -> MemberStats:
        """Make this the member's connection, in place of an earlier one."""
        with self._lock:
            member = self._members[connection.peer]
            before, member.connection = member.connection, connection
            self._left.discard(connection.peer)
            self.silent_members.heartbeats.hear(connection.peer)
        self._abort(before)
        return member

    def _remove(self, member: MemberStats, connection: framing.Connection, lost: bool) -> None:
        self.run_state.leave(connection.peer, lost)
        member.count_bytes(connection)
        with self._lock:
            if member.connection is connection:
                member.connection = None

    def _report_loss(self, member: MemberStats, connection: framing.Connection, error: Exception) -> bool:
        """Emit why a connection ended; return whether its member is lost."""
        if member.connection is not connection:
            self._emit(Replaced(connection.peer))
            return False
        if self._over.is_set():
            return False
        reason = str(error) or type(error).__name__
        self._emit(Dropped(connection.peer, reason, isinstance(error, Unfit)))
        return True
