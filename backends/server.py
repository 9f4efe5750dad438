"""The asynchronous parameter server: flat weights, one thread a worker, updates first come first served."""

import math
import socket
import threading
import time
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from backends import central, checkpoint, wire
from backends.central import Central
from backends.door import Door
from backends.layout import Layout
from backends.optimise import finite
from backends.peers import Peer
from backends.saver import Saver
from backends.tickets import EVALUATE, FINISH, Ticket, Tickets
from backends.work import STOPPED, Emit, Work, diverged, resumed

TICK_S = 0.5
DEPARTURE_S = 2.0


class Server:
    """Serves one run. ``emit`` gets its events, from several threads: joined, silent, replaced, dropped, refused,
    evaluated, diverged, checkpoint, checkpoint_failed and progress.

    Weights go to workers straight from the buffer that others' updates change: a worker may see some
    blocks before and some after an update, as asynchronous SGD allows. Checkpoints are taken under the lock.
    Raises ValueError or OSError where the checkpoint to go on from cannot be used.
    """

    def __init__(self, work, identity, emit):
        # type: (Work, wire.Identity, Emit) -> None
        self.work = work
        self._tls = wire.context(identity, server_side=True)
        self._emit = emit
        self._lock = threading.Lock()
        self._introduction = threading.Lock()
        self._central = None  # type: Optional[Central]
        self._earlier = []  # type: List[Dict[str, Any]]
        self._tickets = self._begin()
        self._saver = Saver(work.checkpoint_path, emit)
        self._over = threading.Event()
        self._reason = None  # type: Optional[str]
        self._began = self._ended = None  # type: Optional[float]
        self.peers = {}  # type: Dict[str, Peer]
        self.evaluations = []  # type: List[Dict[str, Any]]

    def _begin(self):
        # type: () -> Tickets
        if self.work.resume is None:
            return Tickets(self.work.steps, 0, self.work.evaluate_every)
        saved, layout = checkpoint.read(self.work.resume)
        self._central = Central(layout, saved.weights, saved.momentum, saved.state)
        self._earlier = saved.meta["evaluations"]
        return resumed(self.work, saved.meta)

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
                self._stop(STOPPED)
        self._ended = self._ended or time.monotonic()
        self._over.set()
        door.close()
        self._see_off()
        self._last_checkpoint()
        self._emit({"progress": self.progress()})
        return self.account(time.process_time() - cpu)

    def _stop(self, reason):
        # type: (str) -> None
        self._reason = self._reason or reason
        self._tickets.stop()

    def _see_off(self):
        # type: () -> None
        """Let workers read that the run is over; then end their connections, and wait for what is being done."""
        self._await_departures()
        for peer in list(self.peers.values()):
            self._cut(peer.connection)
        self._await_departures()

    def _await_departures(self):
        # type: () -> None
        deadline = time.monotonic() + DEPARTURE_S
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
                self._introduce(connection, peer, Layout.decode(hello.get("layout")))
                connection.settimeout(None)  # a step may take long; heartbeats tell whether it is alive
                self._emit({"joined": name})
                while self._hand_out(name, peer, connection):
                    pass
            except (wire.WireError, ValueError) as error:
                self._lost(peer, connection, str(error))
            finally:
                self._tickets.abandon(name)
                peer.count(connection)
                with self._lock:
                    if peer.connection is connection:
                        peer.connection = None

    def _admit(self, connection):
        # type: (wire.Connection) -> Peer
        """Make this the worker's connection; one that it had before is dead, and gives way."""
        with self._lock:
            peer = self.peers.setdefault(connection.peer, Peer())
            before, peer.connection = peer.connection, connection
            peer.heard = time.monotonic()
        self._cut(before)
        return peer

    def _lost(self, peer, connection, reason):
        # type: (Peer, wire.Connection, str) -> None
        if peer.connection is not connection:
            self._emit({"replaced": connection.peer})
        elif not self._over.is_set():
            with self._lock:
                if self._central is not None:
                    self._central.forget(connection.peer)
            self._emit({"dropped": connection.peer, "reason": reason})

    def _introduce(self, connection, peer, layout):
        # type: (wire.Connection, Peer, Layout) -> None
        """Agree on the layout; the first worker of a new run gives the initial weights, others get the run's state."""
        with self._introduction:
            if self._central is None:
                self._central = central.from_worker(connection, layout)
                state = None
            else:
                state = self._state()
        if layout != self._central.layout:
            raise ValueError("its model is not the run's: the arrays have other names or shapes")
        if state is not None:
            connection.send({"initial": False}, wire.as_bytes((state,)))
        peer.gradients = np.empty(layout.parameters, np.float32)
        peer.state = np.empty(layout.state, np.float32)

    # -- work --------------------------------------------------------------------------------------

    def _hand_out(self, name, peer, connection):
        # type: (str, Peer, wire.Connection) -> bool
        """One ticket, to its end. False when there is no more."""
        ticket = self._tickets.take(name, lambda: connection.aborted)
        if ticket.kind == FINISH:
            connection.send({"kind": FINISH})
            return False
        version = self._tickets.done
        payload = [self._model.weights]
        if ticket.kind == EVALUATE:
            payload.append(self._state())
        connection.send(self.work.order(ticket), wire.as_bytes(payload))
        if ticket.kind == EVALUATE:
            self._evaluated(name, ticket, connection.receive().meta)
        else:
            buffers = wire.as_bytes((peer.gradients, peer.state))
            loss = wire.number(connection.receive(lambda _: buffers).meta, "loss")
            self._learn(name, peer, ticket, version, loss)
        peer.count(connection)
        return True

    def _learn(self, name, peer, ticket, version, loss):
        # type: (str, Peer, Ticket, int, float) -> None
        """Update the weights and count the step as one, so that no checkpoint can come between."""
        sound = math.isfinite(loss) and finite(peer.state)
        with self._lock:
            step = self._tickets.done
            sound = sound and self._model.update(peer.gradients, self.work.optimiser.momentum)
            if sound:
                self._model.report(name, peer.state)
                peer.learnt(loss, step - version)
                done = self._tickets.complete(name)
                if done == self.work.steps:
                    self._ended = time.monotonic()
                elif self.work.checkpoint_every and done % self.work.checkpoint_every == 0:
                    self._saver.behind(self._snapshot, self._model.layout)
        if not sound:
            self._diverged(name, ticket, loss)

    def _evaluated(self, name, ticket, answer):
        # type: (str, Ticket, Dict[str, Any]) -> None
        scores = {key: wire.number(answer, key) for key in ("loss", "accuracy", "seconds")}
        if not math.isfinite(scores["loss"]):
            self._diverged(name, ticket, scores["loss"])
            return
        record = dict(scores, step=ticket.step, worker=name)
        self.evaluations.append(record)
        self._emit({"evaluated": record})
        self._tickets.complete(name)

    def _diverged(self, name, ticket, loss):
        # type: (str, Ticket, float) -> None
        """Refuse what would spoil the weights, and end the run: what follows could only be as bad."""
        self._emit({"diverged": name, "step": ticket.step, "loss": str(loss)})
        self._stop(diverged(name, ticket, loss))
        self._tickets.abandon(name)

    # -- state -------------------------------------------------------------------------------------

    @property
    def _model(self):
        # type: () -> Central
        assert self._central is not None, "workers are served after the first has given the initial weights"
        return self._central

    def _state(self):
        # type: () -> np.ndarray
        with self._lock:
            return self._model.state()

    def _snapshot(self):
        # type: () -> checkpoint.Checkpoint
        evaluations = self._earlier + self.evaluations
        return self._model.snapshot(dict(self.work.description, step=self._tickets.done, evaluations=evaluations))

    def _last_checkpoint(self):
        # type: () -> None
        """Of where the run stands, but for one that has diverged: what was saved before is worth more."""
        self._saver.join()
        if self._central is not None and (self._tickets.finished or self._reason == STOPPED):
            with self._lock:
                snapshot = self._snapshot()
            self._saver.now(snapshot, self._model.layout)

    # -- accounts ------------------------------------------------------------------------------------

    def progress(self):
        # type: () -> Dict[str, Any]
        """Where the run stands, for the live table."""
        now = time.monotonic()
        return {
            "done": self._tickets.done,
            "total": self.work.steps,
            "elapsed_s": (self._ended or now) - (self._began or now),
            "workers": {name: peer.summary() for name, peer in list(self.peers.items())},
        }

    def account(self, cpu_s):
        # type: (float) -> Dict[str, Any]
        """What the run came to; ``reason`` says why it ended before its last step, ``evaluations`` are its own."""
        return dict(
            self.progress(),
            finished=self._tickets.finished,
            reason=None if self._tickets.finished else self._reason,
            evaluations=self.evaluations,
            service_s=self._central.service_s if self._central is not None else None,
            cpu_s=cpu_s,
        )
