"""Where a run of peers is conducted from: they exchange what they learn among themselves, and take turns here."""

from typing import Any, Dict, List

from backends.frameworks.base import Arrays
from backends.network import framing
from backends.peers.coordinator_state import PeerCoordinatorState
from backends.peers.membership import GIVE, SAVE, TAKE, PeerWorkItem
from backends.protocol import Emit
from backends.server.host import Host
from backends.server.worker_state import described, room
from backends.training.layout import Layout
from backends.training.member_stats import MemberStats
from backends.training.run_spec import RunSpec
from backends.training.step_queue import EVALUATE, FINISH, STEP


class PeerCoordinator(Host):
    """Serves one run of peers. Raises ValueError or OSError where the checkpoint to go on from cannot be used."""

    def __init__(self, work: RunSpec, identity: framing.Identity, emit: Emit) -> None:
        super().__init__(work, identity, emit, PeerCoordinatorState(work, emit))

    def _introduce(self, connection: framing.Connection, peer: MemberStats, hello: Dict[str, Any]) -> None:
        layout = Layout.decode(hello.get("layout"))
        address = [str(hello.get("address")), int(framing.number(hello, "port"))]
        kept = self.office.join(connection.peer, layout, address, str(hello.get("digest")))
        connection.send({"kept": labels(kept or {})}, framing.as_bytes(flat(kept or {})))

    def _hand_out(self, name: str, peer: MemberStats, connection: framing.Connection) -> bool:
        office = self.office
        turn = office.take(name, lambda: connection.aborted)
        if turn.kind == TAKE:
            connection.send(office.order(name, turn), framing.as_bytes(office.copy))
            connection.receive()
            office.tickets.took(name)
        elif turn.kind == FINISH:
            keep = office.asks_last(name)
            connection.send({"kind": FINISH, "keep": keep})
            if keep:
                self._keep(name, connection, turn, last=True)
        else:
            connection.send(office.order(name, turn))
            _ANSWERS[turn.kind](self, name, peer, connection, turn)
        peer.count(connection)
        return bool(turn.kind != FINISH)

    def _stepped(self, name: str, peer: MemberStats, connection: framing.Connection, turn: PeerWorkItem) -> None:
        answer = connection.receive().meta
        peer.bytes += int(framing.number(answer, "sent"))
        if answer.get("interrupted"):
            self.office.interrupted(name)
        else:
            loss, batch, seconds = (framing.number(answer, key) for key in ("loss", "batch", "seconds"))
            self.office.stepped(name, peer, turn, loss, int(batch), seconds)

    def _evaluated(self, name: str, peer: MemberStats, connection: framing.Connection, turn: PeerWorkItem) -> None:
        answer = connection.receive().meta
        scores = {key: framing.number(answer, key) for key in ("loss", "accuracy", "seconds")}
        self.office.evaluated(name, turn, scores)

    def _given(self, name: str, peer: MemberStats, connection: framing.Connection, turn: PeerWorkItem) -> None:
        connection.receive()
        connection.send({"own": True})
        given = self._receive(connection)
        self.office.copy = given["own"] + given["state"]
        self.office.tickets.gave()

    def _saved(self, name: str, peer: MemberStats, connection: framing.Connection, turn: PeerWorkItem) -> None:
        self._keep(name, connection, turn)
        self.office.saved(name)

    def _keep(self, name: str, connection: framing.Connection, turn: PeerWorkItem, last: bool = False) -> None:
        """Ask for what a member has, but for weights that another has already handed over."""
        digest = str(connection.receive().meta.get("digest"))
        connection.send({"own": self.office.wants(name, digest, last)})
        self.office.keep(name, self._receive(connection), turn.step)

    def _receive(self, connection: framing.Connection) -> Dict[str, Arrays]:
        """All that a member has. Raises WireError where it is not of the run's model."""
        found: List[Dict[str, Arrays]] = []

        def payload(meta: Dict[str, Any]) -> Any:
            found.append(rooms(meta.get("kept"), self.office.layout, len(self.peers)))
            return framing.as_bytes(flat(found[0]))

        connection.receive(payload)
        parameters, state = self.office.layout.parameters, self.office.layout.state
        shapes = [array.shape for array in found[0].get("own", ()) + found[0].get("state", ())]
        if shapes not in ([(state,)], [(parameters,), (parameters,), (state,)]):
            raise framing.WireError("%s handed over weights of another model" % connection.peer)
        return found[0]


_ANSWERS = {
    STEP: PeerCoordinator._stepped,
    EVALUATE: PeerCoordinator._evaluated,
    GIVE: PeerCoordinator._given,
    SAVE: PeerCoordinator._saved,
}


def labels(kept: Dict[str, Arrays]) -> List[Any]:
    """What a frame says of named arrays: name, and types and shapes."""
    return [[label, described(arrays)] for label, arrays in kept.items()]


def flat(kept: Dict[str, Arrays]) -> Arrays:
    """The arrays of all names, one after the other."""
    return tuple(array for arrays in kept.values() for array in arrays)


def rooms(told: Any, layout: Layout, members: int) -> Dict[str, Arrays]:
    """Arrays to receive into, by name. Raises WireError for what cannot be a member's."""
    most = 64 * (layout.parameters + layout.state) * (members + 1) + (1 << 16)
    try:
        return {str(label): room(description, most) for label, description in told}
    except (TypeError, ValueError) as error:
        raise framing.WireError("cannot keep %r: %s" % (told, error)) from error
