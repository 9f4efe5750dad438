"""The parts a device plays in a run: parameter server, worker, or a cluster of its own."""

import threading
import time
from typing import Any, Callable, Dict, NamedTuple, Tuple

from backends.agent import files
from backends.data import dataset
from backends.frameworks.base import OptimizerSettings, Replica, framework
from backends.network import framing, heartbeat
from backends.network.mailbox import Mailbox
from backends.peers.coordinator import PeerCoordinator
from backends.peers.exchanges.base import ExchangeParts, LocalUpdate
from backends.peers.exchanges.registry import exchange
from backends.peers.peer import Peer
from backends.profiling.step_profile import build
from backends.server import worker
from backends.server.parameter_server import ParameterServer
from backends.strategies.strategy import Strategy
from backends.training import single_device, step
from backends.training.host import Host
from backends.training.lr_schedule import schedule
from backends.training.run_spec import RunSpec
from profilers import records
from profilers.sampling import Sampler

METER_S = 1.0


def _nothing(*_: Any) -> None:
    pass


class StartedRole(NamedTuple):
    """What works until the host has no more: ``run`` gives what was spent; ``hear`` gets what heartbeats are answered
    with, ``end`` ends it from outside, and ``told`` gives what its senders tell."""

    run: Callable[[], step.TimeSpent]
    hear: Callable[[Dict[str, Any]], None] = _nothing
    end: Callable[[], None] = _nothing
    told: Callable[[], Dict[str, Any]] = dict


def serve(job: Any, address: str, identity: Any, work: Dict[str, Any]) -> Dict[str, Any]:
    """Host the parameter server of a run; emits the port it listens on, then the run's events."""
    return _host(job, address, ParameterServer(_work(work), framing.Identity(*identity), job.emit))


def conduct(job: Any, address: str, identity: Any, work: Dict[str, Any]) -> Dict[str, Any]:
    """Host the conductor of a run of peers; emits as ``serve`` does."""
    return _host(job, address, PeerCoordinator(_work(work), framing.Identity(*identity), job.emit))


def _host(job: Any, address: str, host: Host) -> Dict[str, Any]:
    listener = framing.listen(address)
    job.emit({"port": listener.getsockname()[1]})
    _await_go(job)  # the run's clock starts with the word, not with the listening
    return host.run(listener, job.stopping.is_set)


def work(job: Any, part: Dict[str, Any], address: str, port: int, identity: Any, heartbeat_s: float) -> Dict[str, Any]:
    """Be a worker: prepare, wait for the word, build the model, then work until the server has no more."""

    def begin(
        connection: framing.Connection, replica: Replica, train: dataset.BatchLoader, test: Any, meter: TelemetrySender
    ) -> StartedRole:
        sending = Strategy.from_text(part["strategy"]).compressor.build(replica.variables, part["correction"])
        return StartedRole(
            lambda: worker.run(connection, replica, train, test, part["slowdown"], meter.note, sending),
            told=sending.metrics,
        )

    return _take_part(job, part, address, port, framing.Identity(*identity), heartbeat_s, begin)


def join(job: Any, part: Dict[str, Any], address: str, port: int, identity: Any, heartbeat_s: float) -> Dict[str, Any]:
    """Be a member of a run of peers: as ``work``, with links of its own to the others."""
    known = framing.Identity(*identity)

    def begin(
        connection: framing.Connection, replica: Replica, train: dataset.BatchLoader, test: Any, meter: TelemetrySender
    ) -> StartedRole:
        listener = framing.listen(part["listen"])
        listens_on = listener.getsockname()[1]
        links = Mailbox(part["name"], known, listener, replica.weights.size, heartbeat_s, job.emit)
        means = _means(part, replica, links)
        made = exchange(means)
        links.handle = made.handle
        optimiser = OptimizerSettings(*part["optimiser"])
        member = Peer(connection, replica, train, test, made, optimiser, part["slowdown"])
        return StartedRole(
            lambda: member.run(part["listen"], listens_on, meter.note),
            lambda meta: links.call(int(meta.get("epoch", 0))),
            links.close,
            made.metrics,
        )

    return _take_part(job, part, address, port, known, heartbeat_s, begin)


def _means(part: Dict[str, Any], replica: Replica, links: Mailbox) -> ExchangeParts:
    strategy = Strategy.from_text(part["strategy"])
    return ExchangeParts(
        replica=replica,
        mailbox=links,
        topology=strategy.topology.build(part["shared_seed"]),
        strategy=strategy,
        local_update=LocalUpdate(replica, strategy.with_lars),
        batch=part["batch"],
    )


def _take_part(
    job: Any,
    part: Dict[str, Any],
    address: str,
    port: int,
    identity: framing.Identity,
    heartbeat_s: float,
    begin: Callable[..., StartedRole],
) -> Dict[str, Any]:
    """Prepare, wait for the word, build the model, connect with a pulse, and work until the host has no more.

    ``begin(connection, replica, train, test, meter)`` makes what works.
    """
    train, test = _prepare(job, part)
    meter = TelemetrySender(job)
    built = build(*_model(part))
    job.emit({"built_s": built.build_s})
    tls = framing.context(identity, server_side=False)
    with meter:
        connection = framing.connect(address, port, tls, heartbeat_s)
        beats = framing.connect(address, port, tls, heartbeat_s)
        lost = []
        begun = begin(connection, built.replica, train, test, meter)

        def silent(reason: str) -> None:
            lost.append(reason)
            begun.end()
            connection.abort()

        pulse = heartbeat.Heartbeat(beats, heartbeat_s, silent, begun.hear)
        stopper = threading.Thread(target=_abort_on_stop, args=(job, connection, pulse, begun.end), daemon=True)
        stopper.start()
        try:
            spent = begun.run()
        except framing.WireError as error:
            raise framing.WireError(lost[0] if lost else str(error)) from error
        finally:
            begun.end()
            pulse.close()
            connection.close()
    return {"spent": records.encode(spent), "build_s": built.build_s, "sender": begun.told()}


def alone(job: Any, part: Dict[str, Any], work: Dict[str, Any]) -> Dict[str, Any]:
    """Be a cluster of one device."""
    train, test = _prepare(job, part)
    began = time.monotonic()
    meter = TelemetrySender(job)
    with meter:
        built = build(*_model(part))
        job.emit({"built_s": built.build_s})
        account, spent = single_device.run(
            _work(work),
            built.replica,
            train,
            test,
            job.emit,
            job.stopping.is_set,
            part["slowdown"],
            part["name"],
            began,
            meter.note,
        )
    account.update(spent=records.encode(spent), build_s=built.build_s)
    return account


class TelemetrySender:
    """Emits, every few seconds, counters and watts since the last time and where the worker's time went."""

    def __init__(self, job: Any) -> None:
        self._job = job
        self._spent = step.TimeSpent(0, 0.0, 0.0, 0.0)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._sampler = Sampler()

    def note(self, spent: step.TimeSpent) -> None:
        """Called by the worker after every step."""
        self._spent = spent

    def __enter__(self) -> "TelemetrySender":
        self._sampler.start()
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended:
            ended = self._ended.wait(METER_S)
            window = self._sampler.stop() if ended else self._sampler.turn()
            self._job.emit({"window": records.encode(window), "spent": records.encode(self._spent)})


def _prepare(job: Any, part: Dict[str, Any]) -> Tuple[dataset.BatchLoader, Any]:
    """Import the framework and read the data, say so, and wait to be told to go."""
    framework(part["framework"]).accelerator()
    images, labels = dataset.unpack(files.fetch(job, part["train"]))
    test = dataset.unpack(files.fetch(job, part["test"]))
    job.emit({"ready": True})
    _await_go(job)
    return dataset.BatchLoader(images, labels, part["batch"], part["seed"]), test


def _await_go(job: Any) -> None:
    while not job.go.wait(0.1):
        if job.stopping.is_set():
            raise InterruptedError("stopped before the run began")


def _model(part: Dict[str, Any]) -> Tuple[Any, ...]:
    keys = ("framework", "model", "input_shape", "classes", "model_seed", "slowdown")
    return tuple(part[key] for key in keys)


def _work(work: Dict[str, Any]) -> RunSpec:
    values = dict(work)
    values["optimiser"] = OptimizerSettings(*values["optimiser"])
    values["schedule"] = schedule(*values["schedule"])
    values["strategy"] = Strategy.from_text(values["strategy"])
    return RunSpec(**values)


def _abort_on_stop(job: Any, connection: framing.Connection, pulse: heartbeat.Heartbeat, end: Any) -> None:
    job.stopping.wait()
    end()
    pulse.close()
    connection.abort()
