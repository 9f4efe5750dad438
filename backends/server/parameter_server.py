"""The parameter server: one thread a worker, updates first come first served or in rounds (``learning``)."""

import threading
import time
from typing import Any, Dict, List

import numpy as np

from backends.network import framing
from backends.protocol import Emit
from backends.server import global_model
from backends.server.aggregation import WorkerGradient
from backends.server.host import TICK_S, Host
from backends.server.state import ServerState, WeightPull
from backends.server.worker_state import room
from backends.strategies.message import Message, buffers
from backends.training.layout import Layout
from backends.training.member_stats import MemberStats
from backends.training.run_spec import RunSpec
from backends.training.step_queue import EVALUATE, FINISH

#: How long workers wait for the one beside the server, when they have built their models and it has not.
PATIENCE_S = 20.0


class ParameterServer(Host):
    """Serves one run.

    Weights go to workers straight from the buffer that others' updates change: where nobody waits for others, a worker
    may see some blocks before and some after an update, as asynchronous SGD allows. Checkpoints are taken under the
    lock. Raises ValueError or OSError where the checkpoint to go on from cannot be used.
    """

    def __init__(self, work: RunSpec, identity: framing.Identity, emit: Emit) -> None:
        super().__init__(work, identity, emit, ServerState(work, emit))
        self._introduction = threading.Condition()

    def _introduce(self, connection: framing.Connection, peer: MemberStats, hello: Dict[str, Any]) -> None:
        """Agree on the layout; the nearest worker of a new run gives the initial weights, others get the run's state,
        and after a checkpoint what they had kept."""
        layout, learning = Layout.decode(hello.get("layout")), self.office
        with self._introduction:
            self._await_nearest(connection)
            first = not learning.begun
            if first:
                learning.begin(global_model.from_worker(connection, layout))
                self._introduction.notify_all()
        if layout != learning.model.layout:
            raise ValueError("its model is not the run's: the arrays have other names or shapes")
        peer.gradients = np.empty(layout.parameters, np.float32)
        peer.state = np.empty(layout.state, np.float32)
        keeps = hello.get("keeps", [])
        peer.kept = room(keeps, 64 * layout.parameters + (1 << 16))
        kept = learning.join(connection.peer, keeps)
        if not first:
            connection.send({"initial": False, "kept": bool(kept)}, framing.as_bytes((learning.state(),) + kept))

    def _await_nearest(self, connection: framing.Connection) -> None:
        """Let the worker on this host come first, whose weights cross no network: over a slow link, all others would
        wait for minutes. One that is late is not waited for."""
        end_s = time.monotonic() + (PATIENCE_S if self.work.host not in ("", connection.peer) else 0.0)
        while not (self.office.begun or connection.aborted) and time.monotonic() < end_s:
            self._introduction.wait(TICK_S)

    # -- work --------------------------------------------------------------------------------------

    def _hand_out(self, name: str, peer: MemberStats, connection: framing.Connection) -> bool:
        """One ticket, to its end. False when there is no more."""
        learning = self.office
        ticket = learning.take(name, lambda: connection.aborted)
        if ticket.kind == FINISH:
            self._finish(name, peer, connection)
            return False
        pull = learning.pull(name, ticket)
        order = dict(self.work.order(ticket), weights=pull.weights.head, batch=pull.batch, keep=pull.keep)
        state = (learning.state(),) if ticket.kind == EVALUATE else ()
        connection.send(order, framing.as_bytes(pull.weights.arrays + state))
        if ticket.kind == EVALUATE:
            answer = connection.receive().meta
            learning.evaluated(
                name, ticket, {key: framing.number(answer, key) for key in ("loss", "accuracy", "seconds")}
            )
        else:
            learning.learn(peer, ticket, self._receive(name, peer, connection, pull), pull.keep)
        peer.count(connection)
        return True

    def _receive(
        self, name: str, peer: MemberStats, connection: framing.Connection, pull: WeightPull
    ) -> WorkerGradient:
        """A worker's gradient and state, into its own buffers, and what it keeps where it was asked for that."""
        found: List[Message] = []

        def payload(meta: Dict[str, Any]) -> Any:
            found.append(buffers(meta.get("gradient", {}), peer.gradients.size, peer.gradients))
            return framing.as_bytes(found[0].arrays + (peer.state,) + (peer.kept if pull.keep else ()))

        answer = connection.receive(payload).meta
        loss, seconds = framing.number(answer, "loss"), framing.number(answer, "seconds")
        return WorkerGradient(name, peer, found[0], pull.version, loss, pull.batch, seconds)

    def _finish(self, name: str, peer: MemberStats, connection: framing.Connection) -> None:
        """Tell a worker that the run is over, and take what it keeps for the last checkpoint."""
        keep = self.office.asks_last(name)
        connection.send({"kind": FINISH, "keep": keep})
        if keep:
            connection.receive(lambda _: framing.as_bytes(peer.kept))
            self.office.keep_last(name, peer.kept)
