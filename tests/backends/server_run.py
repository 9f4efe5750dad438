"""A parameter server runs in a thread, with workers that behave, or do only what a test says."""

import time
from typing import Any

from backends.frameworks.base import Replica, layout_of
from backends.network import framing
from backends.protocol.events import RunAccount, TimeSpent
from backends.protocol.frames import (
    Finish,
    Gradient,
    InitialWeightsRequest,
    RequestedArrays,
    Resumption,
    Scores,
    WorkerEvaluation,
    WorkerHello,
    WorkerStep,
)
from backends.server.parameter_server import ParameterServer
from backends.server.worker import Worker
from backends.strategies import message
from backends.training.local_round import LocalUpdates
from backends.training.run_spec import RunSpec
from tests.backends.fakes import TEST, DrawnBatches, Softmax
from tests.backends.hosted_run import HostedRun, MemberThread


class ServerRun(HostedRun):
    """A parameter server in a thread."""

    def __init__(self, spec: RunSpec) -> None:
        super().__init__(ParameterServer, spec)


class WorkerThread(MemberThread):
    """A worker that does what it should, in a thread."""

    def __init__(
        self,
        run: ServerRun,
        name: str,
        replica: Replica | None = None,
        batches: Any = None,
        compressor: Any = None,
    ) -> None:
        super().__init__()
        self.replica = replica or Softmax()
        self.batches = batches or DrawnBatches()
        self.spent: TimeSpent | None = None
        self.bytes = 0
        self._run, self._name, self._compressor = run, name, compressor
        self._connection: framing.Connection | None = None
        self.start()

    def take_part(self) -> None:
        self._connection = connection = self._run.connect(self._name)
        member = Worker(connection, self.replica, self.batches, TEST, self._compressor, self._local_updates())
        beats = self._run.heartbeat(self._name, on_answer=member.on_heartbeat)
        try:
            self.spent = member.run()
        finally:
            self.bytes = connection.sent_bytes + connection.received_bytes
            beats.close()
            connection.close()

    def _local_updates(self) -> LocalUpdates | None:
        """Where the strategy has rounds, with the optimizer of the run."""
        spec = self._run.spec
        return LocalUpdates.of_strategy(spec.run.strategy, self.replica, self.batches, spec.optimizer)

    def cut(self) -> None:
        """Gone, as a killed process is."""
        assert self._connection is not None, "it has not begun"
        self._connection.abort()

    def end(self) -> TimeSpent:
        self.await_end()
        assert self.spent is not None
        return self.spent


class ScriptedWorker:
    """A worker that does only what a test tells it to; its heartbeats come until told otherwise."""

    def __init__(self, run: ServerRun, name: str, beating: bool = True) -> None:
        self.replica = Softmax()
        self.connection = run.connect(name)
        self.heartbeat = run.heartbeat(name) if beating else None
        self.connection.send(WorkerHello(layout_of(self.replica), ()))
        answer = self.connection.receive(InitialWeightsRequest, Resumption, payload=self._state)
        if isinstance(answer, InitialWeightsRequest):
            self.connection.send(RequestedArrays(), framing.as_bytes((self.replica.weights, self.replica.state)))

    def _state(self, head: Any) -> Any:
        return () if isinstance(head, InitialWeightsRequest) else framing.as_bytes((self.replica.state,))

    def receive_order(self) -> Any:
        """Receive an order, with the weights (and state) that come with it."""
        pulls = []

        def payload(head: Any) -> Any:
            if isinstance(head, Finish):
                return ()
            pulls.append(message.buffers(head.weights, self.replica.weights.size))
            state = (self.replica.state,) if isinstance(head, WorkerEvaluation) else ()
            return framing.as_bytes(pulls[0].arrays + state)

        order: Any = self.connection.receive(WorkerStep, WorkerEvaluation, Finish, payload=payload)
        for pull in pulls:
            message.put(pull, self.replica.weights)
        return order

    def push(self, loss: Any = 1.0, gradient: float = 0.0, seconds: float = 0.01) -> None:
        """Answer an order to step; seconds: that computing is said to have taken."""
        self.replica.gradients[:] = gradient
        head = message.dense(self.replica.gradients).head
        arrays = framing.as_bytes((self.replica.gradients, self.replica.state))
        self.connection.send(Gradient(loss, seconds, head), arrays)

    def push_scores(self, loss: float = 1.0) -> None:
        """Answer an order to evaluate."""
        self.connection.send(Scores(loss, {"accuracy": 0.5}, 0.1))

    def stop_beating(self) -> None:
        if self.heartbeat is not None:
            self.heartbeat.close()

    def leave(self) -> None:
        """Gone, as a killed process is."""
        self.stop_beating()
        self.connection.abort()
        self.connection.close()


def slowly(seed: int = 1) -> DrawnBatches:
    """Batches that take their time, so that others get in between."""
    return DrawnBatches(seed=seed, before=lambda: time.sleep(0.002))


def assert_whole(run: ServerRun, steps: int, before: int = 0) -> RunAccount:
    """Exactly ``steps`` updates were made and saved, ``before`` of them in an earlier run."""
    account = run.account()
    assert account.finished
    assert account.reason is None
    assert account.done == account.total == steps
    assert sum(one.steps for one in account.workers.values()) == steps - before
    assert run.saved().meta["step"] == run.saved().meta["evaluations"][-1]["step"] == steps
    return account
