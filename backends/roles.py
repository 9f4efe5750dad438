"""The parts a device plays in a run: parameter server, worker, or a cluster of its own."""

import threading
import time
from typing import Any, Dict, Tuple

from backends import data, files, solo, wire, worker
from backends.base import Optimiser, framework
from backends.pretrain import build
from backends.schedule import schedule
from backends.server import Server, Work
from backends.strategies import gates
from backends.strategies.registry import sender
from profilers import records
from profilers.sampling import Sampler

METER_S = 1.0


def serve(job, address, identity, work):
    # type: (Any, str, Any, Dict[str, Any]) -> Dict[str, Any]
    """Host the parameter server of a run; emits the port it listens on, then the run's events."""
    listener = wire.listen(address)
    server = Server(_work(work), wire.Identity(*identity), job.emit)
    job.emit({"port": listener.getsockname()[1]})
    _await_go(job)  # the run's clock starts with the word, not with the listening
    return server.run(listener, job.stopping.is_set)


def work(job, part, address, port, identity, heartbeat_s):
    # type: (Any, Dict[str, Any], str, int, Any, float) -> Dict[str, Any]
    """Be a worker: prepare, wait for the word, build the model, then work until the server has no more."""
    train, test = _prepare(job, part)
    meter = Meter(job)
    built = build(*_model(part))
    job.emit({"built_s": built.build_s})
    tls = wire.context(wire.Identity(*identity), server_side=False)
    with meter:
        connection = wire.connect(address, port, tls, heartbeat_s)
        beats = wire.connect(address, port, tls, heartbeat_s)
        lost = []

        def silent(reason):
            # type: (str) -> None
            lost.append(reason)
            connection.abort()

        pulse = worker.Pulse(beats, heartbeat_s, silent)
        stopper = threading.Thread(target=_abort_on_stop, args=(job, connection, pulse), daemon=True)
        stopper.start()
        try:
            sending = sender(part["sender"], built.replica.variables, part["correction"])
            spent = worker.run(connection, built.replica, train, test, part["slowdown"], meter.note, sending)
        except wire.WireError as error:
            raise wire.WireError(lost[0] if lost else str(error)) from error
        finally:
            pulse.close()
            connection.close()
    return {"spent": records.encode(spent), "build_s": built.build_s}


def alone(job, part, work):
    # type: (Any, Dict[str, Any], Dict[str, Any]) -> Dict[str, Any]
    """Be a cluster of one device."""
    train, test = _prepare(job, part)
    began = time.monotonic()
    meter = Meter(job)
    with meter:
        built = build(*_model(part))
        job.emit({"built_s": built.build_s})
        account, spent = solo.run(
            _work(work), built.replica, train, test, job.emit, job.stopping.is_set, part["slowdown"], part["name"],
            began, meter.note,
        )
    account.update(spent=records.encode(spent), build_s=built.build_s)
    return account


class Meter:
    """Emits, every few seconds, counters and watts since the last time and where the worker's time went."""

    def __init__(self, job):
        # type: (Any) -> None
        self._job = job
        self._spent = worker.Spent(0, 0.0, 0.0, 0.0)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._sampler = Sampler()

    def note(self, spent):
        # type: (worker.Spent) -> None
        """Called by the worker after every step."""
        self._spent = spent

    def __enter__(self):
        # type: () -> Meter
        self._sampler.start()
        self._thread.start()
        return self

    def __exit__(self, *_):
        # type: (Any) -> None
        self._ended.set()
        self._thread.join()

    def _run(self):
        # type: () -> None
        ended = False
        while not ended:
            ended = self._ended.wait(METER_S)
            window = self._sampler.stop() if ended else self._sampler.turn()
            self._job.emit({"window": records.encode(window), "spent": records.encode(self._spent)})


def _prepare(job, part):
    # type: (Any, Dict[str, Any]) -> Tuple[data.Batches, Any]
    """Import the framework and read the data, say so, and wait to be told to go."""
    framework(part["framework"]).accelerator()
    images, labels = data.unpack(files.fetch(job, part["train"]))
    test = data.unpack(files.fetch(job, part["test"]))
    job.emit({"ready": True})
    _await_go(job)
    return data.Batches(images, labels, part["batch"], part["seed"]), test


def _await_go(job):
    # type: (Any) -> None
    while not job.go.wait(0.1):
        if job.stopping.is_set():
            raise InterruptedError("stopped before the run began")


def _model(part):
    # type: (Dict[str, Any]) -> Tuple[Any, ...]
    keys = ("framework", "model", "input_shape", "classes", "model_seed", "slowdown")
    return tuple(part[key] for key in keys)


def _work(work):
    # type: (Dict[str, Any]) -> Work
    values = dict(work)
    values["optimiser"] = Optimiser(*values["optimiser"])
    values["schedule"] = schedule(*values["schedule"])
    values["gate"] = gates.parse(values["gate"])
    return Work(**values)


def _abort_on_stop(job, connection, pulse):
    # type: (Any, wire.Connection, worker.Pulse) -> None
    job.stopping.wait()
    pulse.close()
    connection.abort()
