"""A device takes a role in a run: host, worker, peer or cluster of one device."""

import contextlib
import threading
import time
from typing import Any, Callable, Dict, NamedTuple, Tuple

from backends.agent import files
from backends.frameworks.base import OWN, Replica, framework
from backends.network import framing
from backends.network.heartbeat import HeartbeatSender
from backends.network.mailbox import Mailbox
from backends.optimizers import registry
from backends.optimizers.base import FlatOptimizer
from backends.optimizers.own import JobOptimizer
from backends.peers.coordinator import PeerCoordinator
from backends.peers.exchanges.base import ExchangeParts
from backends.peers.exchanges.registry import exchange
from backends.peers.peer import Peer
from backends.protocol.events import Built, Listening, MemberAccount, Ready, RunAccount, TimeSpent
from backends.protocol.member_specs import HostAddress, MemberSpec
from backends.server.parameter_server import ParameterServer
from backends.server.worker import Worker
from backends.training import single_device
from backends.training.compute_clock import clock_of
from backends.training.local_round import LocalUpdates
from backends.training.run_host import RunHost
from backends.training.run_orders import HostRun, RunPeer, RunWorker, TrainAlone
from backends.training.step_watch import EXCHANGE_S, LEAST_LIMITS, StepWatch
from backends.training.telemetry import TelemetrySender
from backends.training.workload import MemberData, Workload, code_of, member_data, workload

#: How often a task that waits for the go order looks whether it was stopped.
GO_TICK_S = 0.1


class MemberParts(NamedTuple):
    """A member's connection to its host, model, data and telemetry, from which its role is made."""

    connection: framing.Connection
    replica: Replica
    data: MemberData
    telemetry: TelemetrySender


def _ignore(*_: Any) -> None:
    pass


class StartedRole(NamedTuple):
    """A member at work.

    end: ends it from another thread. Idempotent.
    """

    run: Callable[[], TimeSpent]  # works until the host has no more; gives the time spent
    on_heartbeat: Callable[[int], None] = _ignore  # gets the epoch in the answer to each heartbeat
    end: Callable[[], None] = _ignore
    compressor_metrics: Callable[[], Dict[str, Any]] = dict  # figures of its compressor


def host_run(task: Any, order: HostRun) -> RunAccount:
    """Host a run; emits the port that the host listens on, then the run's events."""
    kind = ParameterServer if order.spec.run.strategy.through_server else PeerCoordinator
    host: RunHost = kind(order.spec, order.identity, task.emit)
    listener = framing.listen(order.address)
    task.emit(Listening(listener.getsockname()[1]))
    await_go(task)  # the run's clock starts with the word, not with the listening
    return host.run(listener, task.stopping.is_set)


def run_worker(task: Any, order: RunWorker) -> MemberAccount:
    """Prepare, wait for the go order, build the model, then work until the server is done."""

    def start(parts: MemberParts) -> StartedRole:
        strategy = order.run.strategy
        compressor = strategy.compressor.build(parts.replica.variables, order.correction)
        local = LocalUpdates.of_strategy(strategy, parts.replica, parts.data[0], order.optimizer)
        member = Worker(parts.connection, parts.replica, *parts.data, compressor, local)
        return StartedRole(
            lambda: member.run(parts.telemetry.on_step),
            member.on_heartbeat,
            compressor_metrics=compressor.metrics,
        )

    return _run_member(task, order.member, order.host, start)


def run_peer(task: Any, order: RunPeer) -> MemberAccount:
    """Be a peer: as ``run_worker``, with connections of its own to the other peers."""

    def start(parts: MemberParts) -> StartedRole:
        listener = framing.listen(order.listens_on)
        port, host = listener.getsockname()[1], order.host
        size = parts.replica.weights.size
        mailbox = Mailbox(order.member.name, host.identity, listener, size, host.heartbeat_s, task.emit)
        made = exchange(_exchange_parts(order, parts.replica, mailbox))
        mailbox.handle = made.handle
        peer = Peer(parts.connection, parts.replica, *parts.data, made, order.optimizer)

        def run() -> TimeSpent:
            with StepWatch(peer.exchange_clock, EXCHANGE_S, what="an exchange"):
                return peer.run(order.listens_on, port, parts.telemetry.on_step)

        return StartedRole(run, mailbox.call, mailbox.close, made.metrics)

    return _run_member(task, order.member, order.host, start)


def _exchange_parts(order: RunPeer, replica: Replica, mailbox: Mailbox) -> ExchangeParts:
    strategy = order.run.strategy
    return ExchangeParts(
        replica=replica,
        mailbox=mailbox,
        topology=strategy.topology.build(order.topology_seed),
        strategy=strategy,
        local_update=_local_update(strategy.outer.kind if strategy.local else order.optimizer.kind, replica),
        batch=order.member.batch,
    )


def _local_update(kind: str, replica: Replica) -> FlatOptimizer:
    return JobOptimizer(replica) if kind == OWN else registry.build(kind, replica.variables)


def _run_member(
    task: Any, member: MemberSpec, host: HostAddress, start: Callable[[MemberParts], StartedRole]
) -> MemberAccount:
    """Prepare, wait for the go order, build the model, connect, and work until the host is done."""
    loaded, data = prepare(task, member)
    telemetry = TelemetrySender(task.emit, arrivals=data[0].arrivals, injection=data[0].injection)
    with code_of(member.replica), contextlib.closing(data[0].arrivals):
        built = loaded.build()
        task.emit(Built(built.build_s))
        with telemetry:
            connection, heartbeats = _connect(host), _connect(host)
            role = start(MemberParts(connection, built.replica, data, telemetry))
            role = role._replace(end=_all_of(role.end, data[0].arrivals.stop))
            with StepWatch(clock_of(built.replica), LEAST_LIMITS * host.heartbeat_s):
                spent = _work(task, role, connection, heartbeats, host.heartbeat_s)
    return MemberAccount(spent, built.build_s, role.compressor_metrics())


def _all_of(*functions: Callable[[], None]) -> Callable[[], None]:
    def call_all() -> None:
        for function in functions:
            function()

    return call_all


def _connect(host: HostAddress) -> framing.Connection:
    tls = framing.context(host.identity, server_side=False)
    return framing.connect(host.address, host.port, tls, host.heartbeat_s)


def _work(
    task: Any, role: StartedRole, connection: framing.Connection, heartbeats: framing.Connection, limit_s: float
) -> TimeSpent:
    """To the end of the role.

    Raises WireError with what ended it: the silence of the host comes first.
    """
    lost = []

    def on_lost(reason: str) -> None:
        lost.append(reason)
        role.end()
        connection.abort()

    heartbeat = HeartbeatSender(heartbeats, limit_s, on_lost, role.on_heartbeat)

    def abort_on_stop() -> None:
        task.stopping.wait()
        role.end()
        heartbeat.close()
        connection.abort()

    threading.Thread(target=abort_on_stop, daemon=True).start()
    try:
        return role.run()
    except framing.WireError as error:
        raise framing.WireError(lost[0] if lost else str(error)) from error
    finally:
        role.end()
        heartbeat.close()
        connection.close()


def train_alone(task: Any, order: TrainAlone) -> RunAccount:
    """Be a cluster of one device."""
    member = order.member
    loaded, data = prepare(task, member)
    began_s = time.monotonic()
    telemetry = TelemetrySender(task.emit, arrivals=data[0].arrivals)
    with contextlib.closing(data[0].arrivals), telemetry, code_of(member.replica):
        built = loaded.build()
        task.emit(Built(built.build_s))
        with StepWatch(clock_of(built.replica), LEAST_LIMITS * order.spec.heartbeat_s):
            return single_device.run(
                order.spec,
                built.replica,
                *data,
                task.emit,
                task.stopping.is_set,
                member.name,
                began_s,
                telemetry.on_step,
            )[0]


def prepare(task: Any, member: MemberSpec) -> Tuple[Workload, MemberData]:
    """Import the framework, load the job and the data, say so, and wait for the go order."""
    framework(member.replica.framework).accelerator()
    loaded = workload(member.replica)
    with code_of(member.replica):
        own = member_data(member, loaded, files.fetch, _claimed)
    task.emit(Ready(own.labels, own.division))
    await_go(task)
    return loaded, own.data


def _claimed(name: str) -> str:
    """The path of a name in the cache, kept from `planner clean` while this process runs."""
    files.claim(name)
    return files.path(name)


def await_go(task: Any) -> None:
    """Wait for the go order. Raises InterruptedError where the task is stopped before."""
    while not task.go.wait(GO_TICK_S):
        if task.stopping.is_set():
            raise InterruptedError("stopped before the run began")
