"""What any host of a run does: lets members in, notices who is silent, ends when all is done, and accounts for it."""

import abc
import socket
import threading
import time
from typing import Any, Callable, Dict, Optional

from backends.network import framing
from backends.network.acceptor import Acceptor
from backends.protocol import Emit
from backends.training.member_stats import MemberStats
from backends.training.run_spec import STOPPED, RunSpec

TICK_S = 0.5
DEPARTURE_S = 2.0
#: How long members may take to hand over what they keep, as long as their hearts beat.
HAND_OVER_S = 40.0


class Host(abc.ABC):
    """Serves one run. ``emit`` gets its events, from several threads: joined, silent, replaced, dropped, refused,
    evaluated, diverged, checkpoint, checkpoint_failed and progress.

    ``office`` decides who does what next (``learning.Learning``, ``concert.Concert``); its ``tickets`` know when all is
    done.
    """

    def __init__(self, work: RunSpec, identity: framing.Identity, emit: Emit, office: Any) -> None:
        self.work = work
        self.office = office
        self._tls = framing.context(identity, server_side=True)
        self._emit = emit
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._began: Optional[float] = None
        self._ended: Optional[float] = None
        self.peers: Dict[str, MemberStats] = {}

    @abc.abstractmethod
    def _introduce(self, connection: framing.Connection, peer: MemberStats, hello: Dict[str, Any]) -> None:
        """Let a member join. Raises ValueError where it does not fit."""

    @abc.abstractmethod
    def _hand_out(self, name: str, peer: MemberStats, connection: framing.Connection) -> bool:
        """One piece of work, to its end. False when there is no more."""

    # -- life ------------------------------------------------------------------------------------

    def run(self, listener: socket.socket, should_stop: Callable[[], bool]) -> Dict[str, Any]:
        """Serve until all steps are done, training diverges or ``should_stop``; closes the listener.

        Returns the run's account.
        """
        self._began = time.monotonic()
        cpu = time.process_time()
        door = Acceptor(listener, self._tls, self.work.heartbeat_s, self._serve, self._beat, self._emit)
        while not self.office.tickets.wait(min(TICK_S, self.work.heartbeat_s / 4.0)):
            self._emit({"progress": self.progress()})
            self._cut_silent()
            if should_stop():
                self.office.stop(STOPPED)
        self._ended = self.office.ended or time.monotonic()
        self._over.set()
        door.close()
        self._see_off()
        self.office.last_checkpoint()
        self._emit({"progress": self.progress()})
        return self.account(time.process_time() - cpu)

    def _see_off(self) -> None:
        """Let workers read that the run is over; then end their connections, and wait for what is being done."""
        self._await_departures()
        for peer in list(self.peers.values()):
            self._cut(peer.connection)
        self._await_departures()

    def _await_departures(self) -> None:
        keeping = any(self.office.asks_last(name) for name in list(self.peers))
        deadline = time.monotonic() + (HAND_OVER_S if keeping else DEPARTURE_S)
        while time.monotonic() < deadline and any(peer.connection for peer in list(self.peers.values())):
            self._cut_silent()
            time.sleep(0.01)

    def _beat(self, name: str) -> Dict[str, Any]:
        peer = self.peers.get(name)
        if peer is not None:
            peer.heard = time.monotonic()
        return {"call": self.office.tickets.call}

    def _cut_silent(self) -> None:
        now = time.monotonic()
        for name, peer in list(self.peers.items()):
            silence_s = now - peer.heard
            connection = peer.connection
            if connection is not None and not connection.aborted and silence_s > self.work.heartbeat_s:
                self._emit({"silent": name, "reason": "no heartbeat for %.1f s" % silence_s})
                self._cut(connection)

    def _cut(self, connection: Optional[framing.Connection]) -> None:
        """End a connection; whatever its thread is waiting for, it goes on and gives its ticket back."""
        if connection is not None:
            connection.abort()
            self.office.tickets.wake()

    # -- arrivals ----------------------------------------------------------------------------------

    def _serve(self, connection: framing.Connection, hello: Dict[str, Any]) -> None:
        name = connection.peer
        peer = self._admit(connection)
        with peer.turn:
            try:
                self._introduce(connection, peer, hello)
                connection.settimeout(None)  # a step may take long; heartbeats tell whether it is alive
                self._emit({"joined": name})
                while self._hand_out(name, peer, connection):
                    pass
            except (framing.WireError, ValueError) as error:
                self._lost(peer, connection, str(error))
            finally:
                self._depart(name, peer, connection)

    def _admit(self, connection: framing.Connection) -> MemberStats:
        """Make this the worker's connection; one that it had before is dead, and gives way."""
        with self._lock:
            peer = self.peers.setdefault(connection.peer, MemberStats())
            before, peer.connection = peer.connection, connection
            peer.heard = time.monotonic()
        self._cut(before)
        return peer

    def _depart(self, name: str, peer: MemberStats, connection: framing.Connection) -> None:
        self.office.leave(name)
        peer.count(connection)
        with self._lock:
            if peer.connection is connection:
                peer.connection = None

    def _lost(self, peer: MemberStats, connection: framing.Connection, reason: str) -> None:
        if peer.connection is not connection:
            self._emit({"replaced": connection.peer})
        elif not self._over.is_set():
            self.office.forget(connection.peer)
            self._emit({"dropped": connection.peer, "reason": reason})

    # -- accounts ------------------------------------------------------------------------------------

    def progress(self) -> Dict[str, Any]:
        """Where the run stands, for the live table."""
        now = time.monotonic()
        return {
            "done": self.office.tickets.done,
            "total": self.work.steps,
            "elapsed_s": (self.office.ended or self._ended or now) - (self._began or now),
            "workers": {name: peer.summary() for name, peer in list(self.peers.items())},
        }

    def account(self, cpu_s: float) -> Dict[str, Any]:
        """What the run came to; ``reason`` says why it ended before its last step, ``evaluations`` are its own."""
        return dict(
            self.progress(),
            finished=self.office.tickets.finished,
            reason=None if self.office.tickets.finished else self.office.reason,
            evaluations=self.office.evaluations,
            service_s=self.office.service_s,
            cpu_s=cpu_s,
        )
