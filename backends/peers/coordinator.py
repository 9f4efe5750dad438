"""The coordinator of peers hands out work; peers exchange gradients and weights directly."""

from typing import Any, Dict, List

from backends.frameworks.base import Arrays
from backends.network import framing
from backends.peers.coordinator_state import STATE, WEIGHTS, PeerCoordinatorState
from backends.peers.scheduler import GIVE, SAVE, TAKE, PeerWorkItem
from backends.protocol.events import Emit
from backends.protocol.orders import Identity
from backends.training.array_transfer import allocate_named, describe_named, flatten, most_bytes
from backends.training.host import Host
from backends.training.layout import Layout
from backends.training.member_stats import MemberStats
from backends.training.run_spec import RunSpec
from backends.training.step_queue import EVALUATE, FINISH, STEP


class PeerCoordinator(Host):
    """Serves one run of peers.

    Raises ValueError or OSError where the checkpoint to resume from cannot be used.
    """

    coordinator: PeerCoordinatorState

    def __init__(self, spec: RunSpec, identity: Identity, emit: Emit) -> None:
        super().__init__(spec, identity, emit)
        self.coordinator = PeerCoordinatorState(spec, emit)

    def _introduce(self, connection: framing.Connection, member: MemberStats, hello: Dict[str, Any]) -> None:
        layout = Layout.decode(hello.get("layout"))
        address = [str(hello.get("address")), int(framing.number(hello, "port"))]
        state = self.coordinator.join(connection.peer, layout, address, str(hello.get("digest")))
        connection.send({"arrays": describe_named(state)}, framing.as_bytes(flatten(state)))

    def _serve_item(self, name: str, member: MemberStats, connection: framing.Connection) -> bool:
        item = self.coordinator.take(name, lambda: connection.aborted)
        if item.kind == FINISH:
            self._finish(name, connection, item)
        elif item.kind == TAKE:
            self._send_weights(name, connection, item)
        else:
            connection.send(self.coordinator.order(name, item))
            _ANSWERS[item.kind](self, name, member, connection, item)
        member.count_bytes(connection)
        return item.kind != FINISH

    def _finish(self, name: str, connection: framing.Connection, item: PeerWorkItem) -> None:
        hand_over = self.coordinator.hands_over(name)
        connection.send({"kind": FINISH, "hand_over": hand_over})
        if hand_over:
            self._receive_state(name, connection, item, last=True)

    def _send_weights(self, name: str, connection: framing.Connection, item: PeerWorkItem) -> None:
        order = self.coordinator.order(name, item)
        connection.send(order, framing.as_bytes(self.coordinator.weights))
        connection.receive()
        self.coordinator.step_queue.weights_taken(name)

    # -- answers, by the kind of item --------------------------------------------------------------

    def _receive_step(self, name: str, member: MemberStats, connection: framing.Connection, item: PeerWorkItem) -> None:
        answer = connection.receive().meta
        member.bytes += int(framing.number(answer, "sent_bytes"))
        if answer.get("interrupted"):
            self.coordinator.interrupt_step(name)
        else:
            loss, batch, seconds = (framing.number(answer, key) for key in ("loss", "batch", "seconds"))
            self.coordinator.complete_step(name, member, item, loss, int(batch), seconds)

    def _receive_scores(
        self, name: str, member: MemberStats, connection: framing.Connection, item: PeerWorkItem
    ) -> None:
        answer = connection.receive().meta
        scores = {key: framing.number(answer, key) for key in ("loss", "accuracy", "seconds")}
        self.coordinator.record_evaluation(name, item.step, scores)

    def _receive_weights(
        self, name: str, member: MemberStats, connection: framing.Connection, item: PeerWorkItem
    ) -> None:
        connection.receive()
        connection.send({"weights": True})
        state = self._receive_arrays(connection)
        self.coordinator.give_weights(state[WEIGHTS] + state[STATE])

    def _receive_save(self, name: str, member: MemberStats, connection: framing.Connection, item: PeerWorkItem) -> None:
        self._receive_state(name, connection, item)
        self.coordinator.complete_save(name)

    def _receive_state(self, name: str, connection: framing.Connection, item: PeerWorkItem, last: bool = False) -> None:
        """Receive a member's arrays; weights only if no other member has handed over the same."""
        digest = str(connection.receive().meta.get("digest"))
        connection.send({"weights": self.coordinator.wants_weights(name, digest, last)})
        self.coordinator.add_state(name, self._receive_arrays(connection), item.step)

    def _receive_arrays(self, connection: framing.Connection) -> Dict[str, Arrays]:
        """A member's arrays by name. Raises WireError where they are not of the run's model."""
        layout = self.coordinator.layout
        assert layout is not None, "members that have joined have a layout"
        found: List[Dict[str, Arrays]] = []

        def payload(meta: Dict[str, Any]) -> Any:
            found.append(allocate_named(meta.get("arrays"), most_bytes(layout, len(self.members))))
            return framing.as_bytes(flatten(found[0]))

        connection.receive(payload)
        weights, state = ([each.shape for each in found[0].get(label, ())] for label in (WEIGHTS, STATE))
        if weights not in ([], 2 * [(layout.parameters,)]) or state != [(layout.state,)]:
            raise framing.WireError("%s handed over weights of another model" % connection.peer)
        return found[0]


_ANSWERS = {
    STEP: PeerCoordinator._receive_step,
    EVALUATE: PeerCoordinator._receive_scores,
    GIVE: PeerCoordinator._receive_weights,
    SAVE: PeerCoordinator._receive_save,
}
