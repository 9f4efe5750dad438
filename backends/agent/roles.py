"""A device takes a role in a run: host, worker, peer or cluster of one device."""

import functools
import threading
from typing import Any, Callable, Dict, NamedTuple

from backends.agent.member_life import LiveMember, alive
from backends.frameworks.base import Replica
from backends.frameworks.optimizer import OWN
from backends.hosting.run_host import RunHost
from backends.hosting.single_device import SingleDevice
from backends.network import framing
from backends.network.heartbeat import HeartbeatSender
from backends.network.mailbox import Mailbox
from backends.optimizers import registry
from backends.optimizers.base import FlatOptimizer, JobOptimizer
from backends.peers.coordinator import PeerCoordinator
from backends.peers.exchanges.base import ExchangeParts
from backends.peers.exchanges.registry import exchange
from backends.peers.peer import Peer
from backends.protocol.events import Listening, MemberAccount, RunAccount, TimeSpent
from backends.protocol.member_specs import HostAddress, MemberSpec
from backends.server.parameter_server import ParameterServer
from backends.server.worker import Worker
from backends.training.local_round import LocalUpdates
from backends.training.run_orders import HostRun, RunPeer, RunWorker, TrainAlone
from backends.training.step_watch import StepWatch
from backends.training.workload import code_of


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
    task.await_go()  # the run's clock starts with the word, not with the listening
    return host.run(listener, task.stopping.is_set)


def run_worker(task: Any, order: RunWorker) -> MemberAccount:
    """Be a worker until the server is done."""

    def start(member: LiveMember, connection: framing.Connection) -> StartedRole:
        strategy = order.run.strategy
        compressor = strategy.compressor.build(member.replica.variables, order.correction)
        local = LocalUpdates.of_strategy(strategy, member.replica, member.data[0], order.optimizer)
        worker = Worker(connection, member.replica, *member.data, compressor, local)
        return StartedRole(
            lambda: worker.run(member.telemetry.on_step), worker.on_heartbeat, compressor_metrics=compressor.metrics
        )

    return _work_for_host(task, order.member, order.host, start)


def run_peer(task: Any, order: RunPeer) -> MemberAccount:
    """Be a peer until the run is over, with connections of its own to the other peers."""

    def start(member: LiveMember, connection: framing.Connection) -> StartedRole:
        listener = framing.listen(order.listens_on)
        port, host = listener.getsockname()[1], order.host
        size = member.replica.weights.size
        mailbox = Mailbox(order.member.name, host.identity, listener, size, host.heartbeat_s, task.emit)
        made = exchange(_exchange_parts(order, member.replica, mailbox))
        mailbox.handle = made.handle
        code = functools.partial(code_of, order.member.replica)
        peer = Peer(connection, member.replica, *member.data, made, order.optimizer, code)

        def run() -> TimeSpent:
            with StepWatch(peer.exchange_clock, order.wait_s):
                return peer.run(order.listens_on, port, member.telemetry.on_step)

        return StartedRole(run, mailbox.call, mailbox.close, made.metrics)

    return _work_for_host(task, order.member, order.host, start)


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


def _work_for_host(
    task: Any, spec: MemberSpec, host: HostAddress, start: Callable[[LiveMember, framing.Connection], StartedRole]
) -> MemberAccount:
    """Take up a role and work until the host has no more."""
    with alive(task, spec, host.heartbeat_s) as member:
        connection, heartbeats = _connect(host), _connect(host)
        role = start(member, connection)

        def end() -> None:
            role.end()
            member.data[0].arrivals.stop()

        spent = _work(task, role._replace(end=end), connection, heartbeats, host.heartbeat_s)
    return MemberAccount(spent, member.build_s, role.compressor_metrics())


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
    with alive(task, order.member, order.spec.heartbeat_s) as member:
        batches, test = member.data
        device = SingleDevice(order.spec, member.replica, batches, task.emit, order.member.name)
        with device.saved_on_failure():
            return device.train(test, task.stopping.is_set, member.telemetry.on_step, member.began_s)
