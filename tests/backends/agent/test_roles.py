"""A device takes its role when it is told to go, and works until the host has no more."""

import contextlib
import queue
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from backends.agent import member_life, roles
from backends.agent.main import AgentTask
from backends.data import dataset
from backends.frameworks.base import FRAMEWORKS
from backends.frameworks.optimizer import OptimizerSettings
from backends.network import framing
from backends.protocol.events import Built, Joined, Listening, MemberTelemetry, Ready
from backends.protocol.member_specs import HostAddress, InjectionOrder, MemberSpec, ReplicaSpec
from backends.protocol.stream_statistics import InjectionStatistics
from backends.strategies.strategy import Strategy
from backends.training.lr_schedule import RateSchedule
from backends.training.run_orders import HostRun, RunPeer, RunWorker, TrainAlone
from backends.training.run_settings import RunSettings
from backends.training.run_spec import Checkpoints, RunSpec
from backends.training.workload import Workload
from planner.agents.certificates import Authority
from tests.backends.fakes import BATCH, TEST, Softmax, images, softmax_job
from tests.running import HANG_S
from tests.serving import LOOPBACK

STEPS = 6
ENDLESS = 10**9
OPTIMIZER = OptimizerSettings(0.1, 0.9, 0.001)
PARAMETER_SERVER, ALLREDUCE = "parameter-server", "allreduce"
PEERS = RunSettings(strategy=Strategy.from_text(ALLREDUCE))


@pytest.fixture
def softmax(monkeypatch):
    """The name of a framework of softmax regressions."""
    backend = ModuleType("softmax_regression")
    backend.accelerator = lambda: ("cpu", "numpy")
    backend.known_job = lambda model, input_shape, classes, seed, threads: softmax_job(Softmax(seed))
    backend.replica = lambda job: job.model
    monkeypatch.setitem(sys.modules, backend.__name__, backend)
    monkeypatch.setitem(FRAMEWORKS, "softmax", backend.__name__)
    return "softmax"


@pytest.fixture
def member(softmax, tmp_path):
    """A member with its data on this device."""
    train, test = tmp_path / "train.npz", tmp_path / "test.npz"
    train.write_bytes(dataset.pack(*images(64)))
    test.write_bytes(dataset.pack(*TEST.arrays))
    return MemberSpec("nano", ReplicaSpec(softmax, "any"), str(train), str(test), BATCH, seed=1)


def run_spec(steps=STEPS, strategy=PARAMETER_SERVER, members=1):
    return RunSpec(
        run=RunSettings("any", steps=steps, batch=BATCH, strategy=Strategy.from_text(strategy)),
        optimizer=OPTIMIZER,
        schedule=RateSchedule(),
        checkpoints=Checkpoints(None),
        heartbeat_s=HANG_S,
        members=members,
        training_samples=64,
        seed=1,
    )


class Role:
    """A role in a thread; ``task`` is what the operator tells it to."""

    def __init__(self, function, order):
        self._events = queue.Queue()
        self.task = AgentTask(self._events.put)
        self._pool = ThreadPoolExecutor(1)
        self._result = self._pool.submit(function, self.task, order)
        self._result.add_done_callback(lambda _: self._events.put(None))

    def await_event(self, kind):
        while True:
            event = self._events.get(timeout=HANG_S)
            assert event is not None, self._result.result()
            if isinstance(event, kind):
                return event

    def result(self):
        try:
            return self._result.result(HANG_S)
        finally:
            self.task.stopping.set()
            self._pool.shutdown()


class Operator:
    """Gives orders to a host and to its members, with certificates of one run."""

    def __init__(self):
        self._authority = Authority()

    def host(self, run):
        """A host that has been told to go."""
        started = Role(roles.host_run, HostRun(LOOPBACK, self._authority.identity(framing.SERVER), run))
        self._port = started.await_event(Listening).port
        started.task.go.set()
        return started

    def address(self, name, listens=False):
        return HostAddress(LOOPBACK, self._port, self._authority.identity(name, listens), HANG_S)

    def worker(self, member):
        return Role(
            roles.run_worker, RunWorker(member, self.address(member.name), RunSettings(), OptimizerSettings(), 0.0)
        )

    def peer(self, member):
        address = self.address(member.name, listens=True)
        return Role(roles.run_peer, RunPeer(member, address, PEERS, OPTIMIZER, LOOPBACK, topology_seed=1))


@pytest.fixture
def operator():
    return Operator()


# -- waiting for the go order ----------------------------------------------------------------------


def test_a_host_listens_before_its_run_begins(operator):
    identity = Authority().identity(framing.SERVER)
    host = Role(roles.host_run, HostRun(LOOPBACK, identity, run_spec()))
    host.await_event(Listening)
    host.task.stopping.set()
    with pytest.raises(InterruptedError, match="stopped before it was told to go"):
        host.result()


def test_a_member_is_ready_with_its_data_and_builds_when_told_to_go(member):
    alone = Role(roles.train_alone, TrainAlone(member, run_spec()))
    alone.await_event(Ready)
    alone.task.go.set()
    alone.await_event(Built)
    assert alone.result().finished


def test_a_member_that_is_stopped_before_the_run_has_built_nothing(member, monkeypatch):
    monkeypatch.setattr(Workload, "build", None)
    alone = Role(roles.train_alone, TrainAlone(member, run_spec()))
    alone.await_event(Ready)
    alone.task.stopping.set()
    with pytest.raises(InterruptedError, match="stopped before it was told to go"):
        alone.result()


# -- whole runs ------------------------------------------------------------------------------------


def test_one_device_makes_all_steps_and_tells_what_it_spent(member):
    alone = Role(roles.train_alone, TrainAlone(member, run_spec()))
    alone.task.go.set()
    assert alone.await_event(MemberTelemetry).spent.steps <= STEPS
    account = alone.result()
    assert (account.done, account.workers["nano"].steps) == (STEPS, STEPS)


def test_a_worker_makes_the_steps_of_its_parameter_server(operator, member):
    server = operator.host(run_spec())
    worker = operator.worker(member)
    worker.task.go.set()
    assert worker.result().spent.steps == STEPS
    assert server.result().finished


def test_peers_make_the_steps_of_their_coordinator(operator, member):
    order = run_spec(strategy=ALLREDUCE, members=2)
    coordinator = operator.host(order)
    peers = [operator.peer(member._replace(name=name)) for name in ("nano", "tx2")]
    for peer in peers:
        peer.task.go.set()
    spent = [peer.result().spent.steps for peer in peers]
    account = coordinator.result()
    assert account.finished
    assert [account.workers[name].steps for name in ("nano", "tx2")] == spent


@pytest.mark.parametrize("strategy", [PARAMETER_SERVER, ALLREDUCE])
def test_members_that_may_give_one_another_samples_tell_what_they_gave_to_whom(operator, member, strategy):
    inject = "alpha=1,beta=0.5"
    host = operator.host(run_spec(ENDLESS, strategy, 2)._replace(inject=inject))
    role = operator.worker if strategy == PARAMETER_SERVER else operator.peer
    members = {}
    for seed, name in enumerate(("nano", "tx2")):
        order = InjectionOrder(inject, seed, "run-test-injected-" + name)
        members[name] = role(member._replace(name=name, injection=order))
    for each in members.values():
        each.task.go.set()
    for name, other in (("nano", "tx2"), ("tx2", "nano")):
        told = InjectionStatistics(0, 0, 0, 0, 0, 0, 0, 0, {})
        while not (told.received and told.shared):
            told = members[name].await_event(MemberTelemetry).injected
        assert told.shared_with == {other: told.shared}
        assert told.received_bytes > told.received and told.malformed == 0
    host.task.stopping.set()
    assert host.result().reason == "stopped"
    for each in members.values():
        each.result()


def test_a_worker_that_is_stopped_ends_at_once_and_its_server_with_it_when_stopped_too(operator, member):
    server = operator.host(run_spec(ENDLESS))
    worker = operator.worker(member)
    worker.task.go.set()
    assert server.await_event(Joined).member == "nano"
    worker.task.stopping.set()
    with pytest.raises(framing.WireError, match=framing.SERVER):
        worker.result()
    server.task.stopping.set()
    assert server.result().reason == "stopped"


# -- the order of a host ---------------------------------------------------------------------------


def test_each_part_of_the_preparation_has_its_limit_and_the_build_that_of_its_prediction(member, monkeypatch) -> None:
    limits = []

    @contextlib.contextmanager
    def noted(what, limit_s=None):
        limits.append((what, limit_s))
        yield

    monkeypatch.setattr(member_life, "limited", noted)
    task = AgentTask(lambda event: None)
    task.go.set()
    with member_life.alive(task, member._replace(starting_s=90.0), 10.0):
        pass
    assert limits == [("the import of softmax", None), ("reading its data", None), ("building the model", 900.0)]
