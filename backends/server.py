"""The parameter server: one thread a worker, updates first come first served or in rounds (``learning``)."""

import socket
import threading
import time
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from backends import central, wire
from backends.door import Door
from backends.keeping import room
from backends.layout import Layout
from backends.learning import Learning
from backends.peers import Peer
from backends.rounds import Gradient
from backends.strategies.message import Message, buffers
from backends.tickets import EVALUATE, FINISH
from backends.work import STOPPED, Emit, Work

TICK_S = 0.5
DEPARTURE_S = 2.0


class Server:
    """Serves one run. ``emit`` gets its events, from several threads: joined, silent, replaced, dropped, refused,
    evaluated, diverged, checkpoint, checkpoint_failed and progress.

    Weights go to workers straight from the buffer that others' updates change: where nobody waits for others, a worker
    may see some blocks before and some after an update, as asynchronous SGD allows. Checkpoints are taken under the
    lock. Raises ValueError or OSError where the checkpoint to go on from cannot be used.
    """

    def __init__(self, work, identity, emit):
        # type: (Work, wire.Identity, Emit) -> None
        self.work = work
        self._tls = wire.context(identity, server_side=True)
        self._emit = emit
        self._lock = threading.Lock()
        self._introduction = threading.Lock()
        self._learning = Learning(work, emit)
        self._tickets = self._learning.tickets
        self._over = threading.Event()
        self._began = self._ended = None  # type: Optional[float]
        self.peers = {}  # type: Dict[str, Peer]

    # -- life ------------------------------------------------------------------------------------

    def run(self, listener, should_stop):
        # type: (socket.socket, Callable[[], bool]) -> Dict[str, Any]
        """Serve until all steps are done, training diverges or ``should_stop``; closes the listener.

        Returns the run's account.
        """
        self._began = time.monotonic()
        cpu = time.process_time()
        door = Door(listener, self._tls, self.work.heartbeat_s, self._serve, self._beat, self._emit)
        while not self._tickets.wait(min(TICK_S, self.work.heartbeat_s / 4.0)):
            self._emit({"progress": self.progress()})
            self._cut_silent()
            if should_stop():
                self._learning.stop(STOPPED)
        self._ended = self._learning.ended or time.monotonic()
        self._over.set()
        door.close()
        self._see_off()
        self._learning.last_checkpoint()
        self._emit({"progress": self.progress()})
        return self.account(time.process_time() - cpu)

    def _see_off(self):
        # type: () -> None
        """Let workers read that the run is over; then end their connections, and wait for what is being done."""
        self._await_departures()
        for peer in list(self.peers.values()):
            self._cut(peer.connection)
        self._await_departures()

    def _await_departures(self):
        # type: () -> None
        keeping = any(self._learning.asks_last(name) for name in list(self.peers))
        deadline = time.monotonic() + (max(DEPARTURE_S, self.work.heartbeat_s) if keeping else DEPARTURE_S)
        while time.monotonic() < deadline and any(peer.connection for peer in list(self.peers.values())):
            time.sleep(0.01)

    def _beat(self, name):
        # type: (str) -> None
        peer = self.peers.get(name)
        if peer is not None:
            peer.heard = time.monotonic()

    def _cut_silent(self):
        # type: () -> None
        now = time.monotonic()
        for name, peer in list(self.peers.items()):
            silence_s = now - peer.heard
            connection = peer.connection
            if connection is not None and not connection.aborted and silence_s > self.work.heartbeat_s:
                self._emit({"silent": name, "reason": "no heartbeat for %.1f s" % silence_s})
                self._cut(connection)

    def _cut(self, connection):
        # type: (Optional[wire.Connection]) -> None
        """End a connection; whatever its thread is waiting for, it goes on and gives its ticket back."""
        if connection is not None:
            connection.abort()
            self._tickets.wake()

    # -- arrivals ----------------------------------------------------------------------------------

    def _serve(self, connection, hello):
        # type: (wire.Connection, Dict[str, Any]) -> None
        name = connection.peer
        peer = self._admit(connection)
        with peer.turn:
            try:
                self._introduce(connection, peer, hello)
                connection.settimeout(None)  # a step may take long; heartbeats tell whether it is alive
                self._emit({"joined": name})
                while self._hand_out(name, peer, connection):
                    pass
            except (wire.WireError, ValueError) as error:
                self._lost(peer, connection, str(error))
            finally:
                self._depart(name, peer, connection)

    def _admit(self, connection):
        # type: (wire.Connection) -> Peer
        """Make this the worker's connection; one that it had before is dead, and gives way."""
        with self._lock:
            peer = self.peers.setdefault(connection.peer, Peer())
            before, peer.connection = peer.connection, connection
            peer.heard = time.monotonic()
        self._cut(before)
        return peer

    def _depart(self, name, peer, connection):
        # type: (str, Peer, wire.Connection) -> None
        self._learning.leave(name)
        peer.count(connection)
        with self._lock:
            if peer.connection is connection:
                peer.connection = None

    def _lost(self, peer, connection, reason):
        # type: (Peer, wire.Connection, str) -> None
        if peer.connection is not connection:
            self._emit({"replaced": connection.peer})
        elif not self._over.is_set():
            self._learning.forget(connection.peer)
            self._emit({"dropped": connection.peer, "reason": reason})

    def _introduce(self, connection, peer, hello):
        # type: (wire.Connection, Peer, Dict[str, Any]) -> None
        """Agree on the layout; the first worker of a new run gives the initial weights, others get the run's state, and
        after a checkpoint what they had kept."""
        layout, learning = Layout.decode(hello.get("layout")), self._learning
        with self._introduction:
            first = not learning.begun
            if first:
                learning.begin(central.from_worker(connection, layout))
        if layout != learning.model.layout:
            raise ValueError("its model is not the run's: the arrays have other names or shapes")
        peer.gradients = np.empty(layout.parameters, np.float32)
        peer.state = np.empty(layout.state, np.float32)
        keeps = hello.get("keeps", [])
        peer.kept = room(keeps, 64 * layout.parameters + (1 << 16))
        kept = learning.join(connection.peer, keeps)
        if not first:
            connection.send({"initial": False, "kept": bool(kept)}, wire.as_bytes((learning.state(),) + kept))

    # -- work --------------------------------------------------------------------------------------

    def _hand_out(self, name, peer, connection):
        # type: (str, Peer, wire.Connection) -> bool
        """One ticket, to its end. False when there is no more."""
        learning = self._learning
        ticket = learning.take(name, lambda: connection.aborted)
        if ticket.kind == FINISH:
            self._finish(name, peer, connection)
            return False
        pull, version, keep = learning.pull(name, ticket)
        order = dict(self.work.order(ticket), weights=pull.head, keep=keep)
        state = (learning.state(),) if ticket.kind == EVALUATE else ()
        connection.send(order, wire.as_bytes(pull.arrays + state))
        if ticket.kind == EVALUATE:
            answer = connection.receive().meta
            learning.evaluated(name, ticket, {key: wire.number(answer, key) for key in ("loss", "accuracy", "seconds")})
        else:
            learning.learn(peer, ticket, self._receive(name, peer, connection, version, keep), keep)
        peer.count(connection)
        return True

    def _receive(self, name, peer, connection, version, keep):
        # type: (str, Peer, wire.Connection, int, bool) -> Gradient
        """A worker's gradient and state, into its own buffers, and what it keeps where it was asked for that."""
        found = []  # type: List[Message]

        def payload(meta):
            # type: (Dict[str, Any]) -> Any
            found.append(buffers(meta.get("gradient", {}), peer.gradients.size, peer.gradients))
            return wire.as_bytes(found[0].arrays + (peer.state,) + (peer.kept if keep else ()))

        loss = wire.number(connection.receive(payload).meta, "loss")
        return Gradient(name, peer, found[0], version, loss)

    def _finish(self, name, peer, connection):
        # type: (str, Peer, wire.Connection) -> None
        """Tell a worker that the run is over, and take what it keeps for the last checkpoint."""
        keep = self._learning.asks_last(name)
        connection.send({"kind": FINISH, "keep": keep})
        if keep:
            connection.receive(lambda _: wire.as_bytes(peer.kept))
            self._learning.keep_last(name, peer.kept)

    # -- accounts ------------------------------------------------------------------------------------

    def progress(self):
        # type: () -> Dict[str, Any]
        """Where the run stands, for the live table."""
        now = time.monotonic()
        return {
            "done": self._tickets.done,
            "total": self.work.steps,
            "elapsed_s": (self._learning.ended or self._ended or now) - (self._began or now),
            "workers": {name: peer.summary() for name, peer in list(self.peers.items())},
        }

    def account(self, cpu_s):
        # type: (float) -> Dict[str, Any]
        """What the run came to; ``reason`` says why it ended before its last step, ``evaluations`` are its own."""
        return dict(
            self.progress(),
            finished=self._tickets.finished,
            reason=None if self._tickets.finished else self._learning.reason,
            evaluations=self._learning.evaluations,
            service_s=self._learning.service_s,
            cpu_s=cpu_s,
        )
