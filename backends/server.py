"""The asynchronous parameter server: flat weights, one thread a worker, updates first come first served."""

import resource
import socket
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from backends import checkpoint, optimise, wire
from backends.base import Optimiser, Variable
from backends.schedule import Schedule
from backends.tickets import EVALUATE, FINISH, STEP, Ticket, Tickets

Emit = Callable[[Dict[str, Any]], None]


class Layout(NamedTuple):
    """What a worker's replica looks like from outside; all workers of a run must agree on it."""

    variables: Tuple[Variable, ...]
    state_variables: Tuple[Variable, ...]

    @property
    def parameters(self):
        # type: () -> int
        """Trained elements."""
        return sum(variable.size for variable in self.variables)

    @property
    def state(self):
        # type: () -> int
        """Elements that are not trained."""
        return sum(variable.size for variable in self.state_variables)

    @classmethod
    def decode(cls, value):
        # type: (Any) -> Layout
        """From the JSON of a worker's greeting."""
        return cls(*(tuple(Variable(n, tuple(s), a, b) for n, s, a, b in part) for part in value))


class Work(NamedTuple):
    """What a run's server is to do. ``checkpoint_every`` counts steps; 0 means only at the end."""

    steps: int
    optimiser: Optimiser
    schedule: Schedule
    checkpoint_path: str
    checkpoint_every: int = 0
    evaluate_every: int = 0
    heartbeat_s: float = 10.0
    resume: Optional[str] = None
    description: Dict[str, Any] = {}


class Peer:
    """What the server knows of one worker: the counts survive its connections."""

    def __init__(self):
        # type: () -> None
        self.connection = None  # type: Optional[wire.Connection]
        self.gradients = np.empty(0, np.float32)
        self.state = np.empty(0, np.float32)
        self.steps = 0
        self.loss = None  # type: Optional[float]
        self.version = 0
        self.staleness = 0
        self.sent_bytes = 0
        self.received_bytes = 0

    def count(self, connection):
        # type: (wire.Connection) -> None
        """Move the connection's byte counts here."""
        self.sent_bytes += connection.sent_bytes
        self.received_bytes += connection.received_bytes
        connection.sent_bytes = connection.received_bytes = 0


class Server:
    """Serves one run. ``emit`` gets its events: joined, dropped, evaluated, checkpoint, progress.

    Weights go to workers straight from the buffer that others' updates change: a worker may see some
    blocks before and some after an update, as asynchronous SGD allows. Checkpoints are taken under the lock.
    """

    def __init__(self, work, identity, emit):
        # type: (Work, wire.Identity, Emit) -> None
        self.work = work
        self._tls = wire.context(identity, server_side=True)
        self._emit = emit
        self._tickets = Tickets(work.steps, 0, work.evaluate_every)
        self._lock = threading.Lock()
        self._ready = threading.Condition()
        self._initialising = False
        self._layout = None  # type: Optional[Layout]
        self._weights = np.empty(0, np.float32)
        self._momentum = np.empty(0, np.float32)
        self._state = np.empty(0, np.float32)
        self._started = None  # type: Optional[float]
        self._ended = None  # type: Optional[float]
        self._service_s = 0.0
        self._services = 0
        self._writer = None  # type: Optional[threading.Thread]
        self.peers = {}  # type: Dict[str, Peer]
        self.evaluations = []  # type: List[Dict[str, Any]]

    # -- life ------------------------------------------------------------------------------------

    def run(self, listener, should_stop):
        # type: (socket.socket, Callable[[], bool]) -> Dict[str, Any]
        """Serve until all steps are done, or until asked to stop; returns the run's account."""
        self._started = time.monotonic()
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        while not self._tickets.wait(0.5):
            self._emit({"progress": self.progress()})
            if should_stop():
                self._tickets.stop()
        self._await_departures(2.0)
        listener.close()
        self._checkpoint_now()
        self._emit({"progress": self.progress()})
        return self.account()

    def _await_departures(self, limit_s):
        # type: (float) -> None
        """Let workers read that the run is over before their connections end."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline and any(peer.connection for peer in self.peers.values()):
            time.sleep(0.02)
        for peer in list(self.peers.values()):
            if peer.connection is not None:
                peer.connection.abort()

    def _accept(self, listener):
        # type: (socket.socket) -> None
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return  # closed: the run is over
            threading.Thread(target=self._greet, args=(sock,), daemon=True).start()

    def _greet(self, sock):
        # type: (socket.socket) -> None
        try:
            connection = wire.accept(sock, self._tls, self.work.heartbeat_s)
        except wire.WireError as error:
            self._emit({"refused": str(error)})
            return
        try:
            hello = connection.receive().meta
            if hello.get("pulse"):
                self._beat(connection)
            else:
                self._serve(connection, hello)
        except wire.WireError as error:
            if connection.peer not in self.peers:
                self._emit({"refused": str(error)})
        finally:
            connection.close()

    # -- one worker --------------------------------------------------------------------------------

    def _beat(self, connection):
        # type: (wire.Connection) -> None
        """Answer heartbeats; when they stop for the agreed time, cut the worker off."""
        try:
            while True:
                connection.receive()
                connection.send({})
        except wire.WireError as error:
            peer = self.peers.get(connection.peer)
            if peer is not None and peer.connection is not None:
                self._emit({"silent": connection.peer, "reason": str(error)})
                peer.connection.abort()

    def _serve(self, connection, hello):
        # type: (wire.Connection, Dict[str, Any]) -> None
        name = connection.peer
        peer = self.peers.setdefault(name, Peer())
        if peer.connection is not None:
            peer.connection.abort()  # the same worker again: its old connection is dead
        peer.connection = connection
        connection.settimeout(None)  # a step may take long; heartbeats tell whether it is alive
        try:
            self._introduce(connection, Layout.decode(hello["layout"]))
            peer.gradients = np.empty(self._weights.size, np.float32)
            peer.state = np.zeros(self._state.size, np.float32)
            self._emit({"joined": name})
            while self._hand_out(name, peer, connection):
                pass
        except (wire.WireError, ValueError) as error:
            if not self._tickets.finished:
                self._emit({"dropped": name, "reason": str(error)})
        finally:
            peer.count(connection)
            if peer.connection is connection:
                peer.connection = None
                self._tickets.abandon(name)

    def _introduce(self, connection, layout):
        # type: (wire.Connection, Layout) -> None
        """Agree on the layout; the first worker gives the initial weights unless a checkpoint does."""
        with self._ready:
            while self._initialising:
                self._ready.wait()
            if self._layout is None:
                self._initialising = True
        if not self._initialising:
            if layout != self._layout:
                raise ValueError("its model has another layout than the run's")
            connection.send({"initial": False})
            return
        try:
            self._initialise(connection, layout)
        finally:
            with self._ready:
                self._initialising = False
                self._ready.notify_all()

    def _initialise(self, connection, layout):
        # type: (wire.Connection, Layout) -> None
        if self.work.resume:
            with open(self.work.resume, "rb") as stream:
                saved = checkpoint.read(stream, layout.variables, layout.state_variables)
            self._weights, self._momentum, self._state = saved.weights, saved.momentum, saved.state
            self._tickets = Tickets(self.work.steps, int(saved.meta["step"]), self.work.evaluate_every)
            connection.send({"initial": False})
        else:
            self._weights = np.empty(layout.parameters, np.float32)
            self._momentum = np.zeros(layout.parameters, np.float32)
            self._state = np.empty(layout.state, np.float32)
            initial = wire.as_bytes((self._weights, self._state))
            connection.send({"initial": True})
            connection.receive(lambda _: initial)
        self._layout = layout

    def _hand_out(self, name, peer, connection):
        # type: (str, Peer, wire.Connection) -> bool
        """One ticket, to its end. False when there is no more."""
        ticket = self._tickets.take(name)
        if ticket.kind == FINISH:
            connection.send({"kind": FINISH})
            return False
        peer.version = self._tickets.done
        payload = [self._weights]
        if ticket.kind == EVALUATE:
            payload.append(self.merged_state())
        connection.send({"kind": ticket.kind, "step": ticket.step}, wire.as_bytes(payload))
        if ticket.kind == STEP:
            buffers = wire.as_bytes((peer.gradients, peer.state))
            answer = connection.receive(lambda _: buffers).meta
            self._update(peer, ticket, answer)
        else:
            answer = connection.receive().meta
            self._evaluated(name, ticket, answer)
        self._tickets.complete(name)
        self._note_step(ticket)
        peer.count(connection)
        return True

    def _update(self, peer, ticket, answer):
        # type: (Peer, Ticket, Dict[str, Any]) -> None
        loss = float(answer["loss"])
        with self._lock:
            began = time.perf_counter()
            rate = self.work.optimiser.rate * self.work.schedule.factor(self._tickets.done)
            optimise.apply(self._weights, self._momentum, peer.gradients, self.work.optimiser, rate)
            self._service_s += time.perf_counter() - began
            self._services += 1
        peer.steps += 1
        peer.staleness += self._tickets.done - peer.version
        peer.loss = loss if peer.loss is None else 0.9 * peer.loss + 0.1 * loss

    def _evaluated(self, name, ticket, answer):
        # type: (str, Ticket, Dict[str, Any]) -> None
        record = {
            "step": ticket.step,
            "loss": float(answer["loss"]),
            "accuracy": float(answer["accuracy"]),
            "seconds": float(answer["seconds"]),
            "worker": name,
        }
        self.evaluations.append(record)
        self._emit({"evaluated": record})

    def _note_step(self, ticket):
        # type: (Ticket) -> None
        if ticket.kind != STEP:
            return
        done = self._tickets.done
        if done == self.work.steps:
            self._ended = time.monotonic()
        every = self.work.checkpoint_every
        if every and done % every == 0 and done < self.work.steps:
            self._checkpoint_behind()

    # -- state -------------------------------------------------------------------------------------

    def merged_state(self):
        # type: () -> np.ndarray
        """The mean of what each worker last reported; (state,) float32."""
        reported = [peer.state for peer in self.peers.values() if peer.steps and peer.state.size]
        if reported:
            np.mean(reported, axis=0, out=self._state)
        return self._state

    def _snapshot(self):
        # type: () -> checkpoint.Checkpoint
        with self._lock:
            meta = dict(self.work.description, step=self._tickets.done, evaluations=self.evaluations)
            state = self.merged_state().copy()
            return checkpoint.Checkpoint(self._weights.copy(), self._momentum.copy(), state, meta)

    def _checkpoint_behind(self):
        # type: () -> None
        """Write in a thread of its own; a checkpoint that comes while one is written is left out."""
        if self._writer is None or not self._writer.is_alive():
            self._writer = threading.Thread(target=self._save, args=(self._snapshot(),), daemon=True)
            self._writer.start()

    def _checkpoint_now(self):
        # type: () -> None
        if self._writer is not None:
            self._writer.join()
        if self._layout is not None:
            self._save(self._snapshot())

    def _save(self, snapshot):
        # type: (checkpoint.Checkpoint) -> None
        layout = self._layout
        assert layout is not None, "a snapshot is taken of a known layout"
        checkpoint.save(
            self.work.checkpoint_path, snapshot, layout.variables, layout.state_variables, self._emit
        )

    # -- accounts ------------------------------------------------------------------------------------

    def progress(self):
        # type: () -> Dict[str, Any]
        """Where the run stands, for the live table."""
        began = self._started or time.monotonic()
        return {
            "done": self._tickets.done,
            "total": self.work.steps,
            "elapsed_s": (self._ended or time.monotonic()) - began,
            "workers": {name: self._worker(peer) for name, peer in list(self.peers.items())},
        }

    @staticmethod
    def _worker(peer):
        # type: (Peer) -> Dict[str, Any]
        return {
            "steps": peer.steps,
            "loss": peer.loss,
            "bytes": peer.sent_bytes + peer.received_bytes,
            "staleness": peer.staleness / peer.steps if peer.steps else None,
            "connected": peer.connection is not None,
        }

    def account(self):
        # type: () -> Dict[str, Any]
        """What the run came to."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return dict(
            self.progress(),
            finished=self._tickets.finished,
            evaluations=self.evaluations,
            service_s=self._service_s / self._services if self._services else None,
            cpu_s=usage.ru_utime + usage.ru_stime,
        )
