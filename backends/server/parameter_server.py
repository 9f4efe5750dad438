"""The parameter server sends weights and work items to workers, and receives their gradients."""

import threading
import time
from typing import Any, List, Optional, Sequence, Union

import numpy as np

from backends.frameworks.layout import Layout
from backends.hosting.member_stats import MemberStats
from backends.hosting.run_host import RunHost
from backends.hosting.step_queue import WorkItem
from backends.network import framing, sample_frames
from backends.optimizers import registry
from backends.protocol import frames
from backends.protocol.events import Emit
from backends.protocol.member_specs import Identity
from backends.protocol.stream_statistics import StreamEnd
from backends.server import global_model
from backends.server.aggregation import WorkerGradient
from backends.server.sample_forwarding import ForwardedSamples
from backends.server.state import ServerState
from backends.strategies.message import Message, buffers
from backends.training.array_transfer import allocate
from backends.training.run_spec import RunSpec, Unfit

#: Seconds that workers wait for the one on the server's device, which may build its model last.
LOCAL_WORKER_WAIT_S = 20.0
#: Seconds between checks whether the connection of a waiting worker has ended.
CHECK_INTERVAL_S = 0.5


class ParameterServer(RunHost):
    """Serves one run.

    Weights are sent directly from the buffer that updates change. Without synchronisation a worker
    may receive some of them from before an update and some from after it, as asynchronous SGD
    allows. Checkpoints are taken under the lock.
    Raises ValueError or OSError where the checkpoint to resume from cannot be used.
    """

    hello = frames.WorkerHello
    run_state: ServerState

    def __init__(self, spec: RunSpec, identity: Identity, emit: Emit) -> None:
        super().__init__(ServerState(spec, emit), identity)
        self._model_given = threading.Condition()

    def _introduce(self, connection: framing.Connection, member: MemberStats, hello: frames.WorkerHello) -> None:
        """Agree on the layout and allocate buffers; the first worker of a new run sends weights.

        Any other worker receives the run's state, and after a checkpoint its own.
        """
        layout = hello.layout
        gave_weights = self._begin_with(connection, layout)
        if layout != self.run_state.model.layout or hello.frozen > layout.state:
            raise Unfit
        member.gradients = np.empty(layout.parameters, np.float32)
        member.state = np.empty(layout.state - hello.frozen, np.float32)
        member.own = allocate(hello.own, 64 * layout.parameters + (1 << 16))
        own = self.run_state.join(connection.peer, hello.own)
        if not gave_weights:
            arrays = (self.run_state.mean_model_state(),) + own
            resumption = frames.Resumption(bool(own), self.run_state.stream_offset(connection.peer))
            connection.send(resumption, framing.as_bytes(arrays))

    def _begin_with(self, connection: framing.Connection, layout: Layout) -> bool:
        """Begin with this worker's weights if the run has none; return whether it did."""
        with self._model_given:
            self._await_local_worker(connection)
            if self.run_state.begun:
                return False
            flat_optimizer = registry.build(self.spec.shared_kind, layout.variables)
            self.run_state.begin(global_model.from_worker(connection, layout, flat_optimizer))
            self._model_given.notify_all()
            return True

    def _await_local_worker(self, connection: framing.Connection) -> None:
        """Wait for the worker on the server's device, whose weights cross no network.

        Sending weights over a slow link could keep all others waiting for minutes.
        """
        is_local = self.spec.host in ("", connection.peer)
        end_s = time.monotonic() + (0.0 if is_local else LOCAL_WORKER_WAIT_S)
        while not (self.run_state.begun or connection.aborted) and time.monotonic() < end_s:
            self._model_given.wait(CHECK_INTERVAL_S)

    def _carry_out(self, member: MemberStats, connection: framing.Connection, item: WorkItem) -> Optional[StreamEnd]:
        order = self.run_state.order(connection.peer, item)
        sample_frames.send(connection, order.samples)
        connection.send(order.head, framing.as_bytes(order.arrays))
        if isinstance(order.head, frames.WorkerEvaluation):
            self.run_state.record_evaluation(connection.peer, item.step, connection.receive(frames.Scores))
            return None
        answer = self._receive_gradient(member, connection, item, order.head, order.version)
        if isinstance(answer, frames.StepAbandoned):
            self.run_state.step_queue.abandon(connection.peer)
            return answer.leaves
        self.run_state.add_gradient(item, answer, order.head.hand_over)
        return None

    def _receive_gradient(
        self,
        member: MemberStats,
        connection: framing.Connection,
        item: WorkItem,
        order: frames.WorkerStep,
        version: int,
    ) -> Union[WorkerGradient, frames.StepAbandoned]:
        """Receive a worker's gradient and states into its buffers, if it has made the step."""
        found: List[Message] = []
        share = order.share or frames.Share(0, ())
        left = share.samples

        def payload(head: Any) -> Sequence[memoryview]:
            if isinstance(head, frames.StepAbandoned):
                return ()
            found.append(buffers(head.gradient, member.gradients.size, member.gradients))
            own = member.own if order.hand_over else ()
            return framing.as_bytes(found[0].arrays + (member.state,) + own)

        def forward(head: frames.SharedSamples, content: np.ndarray) -> None:
            nonlocal left
            left -= len(head.sizes)
            if left < 0:
                raise framing.WireError("%s gave more samples than it was asked for" % connection.peer)
            self.run_state.forward(share.receivers, ForwardedSamples(head, content))

        answer: Any = sample_frames.receive(connection, (frames.Gradient, frames.StepAbandoned), payload, forward)
        if isinstance(answer, frames.StepAbandoned):
            return answer
        return WorkerGradient(
            connection.peer,
            found[0],
            version,
            answer.loss,
            order.batch * item.steps,
            answer.seconds,
            item.steps,
            answer.stream,
        )

    def _receive_last_state(self, member: MemberStats, connection: framing.Connection, item: WorkItem) -> None:
        connection.receive(frames.RequestedArrays, payload=lambda _: framing.as_bytes(member.own))
        self.run_state.add_last_state(connection.peer, member.own)
