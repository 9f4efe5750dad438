"""The coordinator of peers hands out work; peers exchange gradients and weights directly."""

from typing import Any, Dict, Optional

from backends.frameworks.base import Arrays
from backends.frameworks.optimizer import slot_shapes
from backends.hosting.member_stats import MemberStats
from backends.hosting.run_host import RunHost
from backends.network import framing
from backends.peers.epochs import PeerWorkItem
from backends.peers.handed_over import joined_state
from backends.peers.state import PeerRunState
from backends.protocol import frames
from backends.protocol.events import Emit
from backends.protocol.member_specs import Identity
from backends.protocol.stream_statistics import StreamEnd
from backends.training.array_transfer import receive_named, send_named
from backends.training.run_spec import RunSpec


class PeerCoordinator(RunHost):
    """Serves one run of peers.

    Raises ValueError or OSError where the checkpoint to resume from cannot be used.
    """

    hello = frames.PeerHello
    run_state: PeerRunState

    def __init__(self, spec: RunSpec, identity: Identity, emit: Emit) -> None:
        super().__init__(PeerRunState(spec, emit), identity)

    def _introduce(self, connection: framing.Connection, member: MemberStats, hello: frames.PeerHello) -> None:
        send_named(connection, self.run_state.join(connection.peer, hello))

    def _carry_out(
        self, member: MemberStats, connection: framing.Connection, item: PeerWorkItem
    ) -> Optional[StreamEnd]:
        name = connection.peer
        if item.kind == frames.STEP:
            return self._step(member, connection, item)
        arrays = self.run_state.weights if item.kind == frames.TAKE else ()
        connection.send(frames.PeerTask(item.kind), framing.as_bytes(arrays))
        if item.kind == frames.EVALUATE:
            answer: Any = connection.receive(frames.Scores, frames.MemberFailed)
            if isinstance(answer, frames.MemberFailed):
                self.run_state.fail(name, answer)
            else:
                self.run_state.record_evaluation(name, item.step, answer)
        elif item.kind == frames.TAKE:
            connection.receive(frames.Done)
            self.run_state.step_queue.weights_taken(name)
        elif item.kind == frames.GIVE:
            self._receive_weights(connection)
        else:
            self._receive_state(connection, item)
            self.run_state.complete_save(name)
        return None

    def _step(self, member: MemberStats, connection: framing.Connection, item: PeerWorkItem) -> Optional[StreamEnd]:
        """Have a member make a step; returns why it leaves instead, if it does."""
        name = connection.peer
        if not item.ordered:
            connection.send(self.run_state.step_order(name, item))
        ahead = self.run_state.take_ahead(name)
        if ahead is not None:
            connection.send(self.run_state.step_order(name, ahead))
        answer: Any = connection.receive(frames.PeerStepDone, frames.StepAbandoned, frames.MemberFailed)
        if isinstance(answer, frames.MemberFailed):
            self.run_state.interrupt_step(name)
            self.run_state.fail(name, answer)
            return None
        if isinstance(answer, frames.StepAbandoned):
            self.run_state.interrupt_step(name)
            leaves: Optional[StreamEnd] = answer.leaves
            return leaves
        member.bytes += answer.sent_bytes
        if answer.interrupted:
            self.run_state.interrupt_step(name)
        else:
            self.run_state.complete_step(name, item, answer)
        return None

    def _receive_last_state(self, member: MemberStats, connection: framing.Connection, item: PeerWorkItem) -> None:
        self._receive_state(connection, item, last=True)

    def _receive_weights(self, connection: framing.Connection) -> None:
        connection.receive(frames.WeightsOffer)
        connection.send(frames.WeightsReply(True))
        state = self._receive_arrays(connection)
        self.run_state.give_weights(state[frames.WEIGHTS] + (joined_state(state),))

    def _receive_state(self, connection: framing.Connection, item: PeerWorkItem, last: bool = False) -> None:
        """Receive a member's arrays; weights only if no other member has handed over the same."""
        name = connection.peer
        digest = connection.receive(frames.WeightsOffer).digest
        connection.send(frames.WeightsReply(self.run_state.wants_weights(name, digest, last)))
        self.run_state.add_state(name, self._receive_arrays(connection), item.step)

    def _receive_arrays(self, connection: framing.Connection) -> Dict[str, Arrays]:
        """A member's arrays by name. Raises WireError where they are not of the run's model."""
        layout = self.run_state.layout
        assert layout is not None, "members that have joined have a layout"
        found = receive_named(connection, layout, len(self.run_state.members))
        weights, state, frozen = (
            [each.shape for each in found.get(label, ())] for label in (frames.WEIGHTS, frames.STATE, frames.FROZEN)
        )
        expected = [(layout.parameters,), *slot_shapes(self.spec.shared_kind, layout.parameters)]
        elements = sum(shape[0] for shape in state + frozen if len(shape) == 1)
        whole = elements == layout.state if weights else elements <= layout.state
        if weights not in ([], expected) or len(state) != 1 or not whole:
            raise framing.WireError("%s handed over weights of another model" % connection.peer)
        return found
