"""A framework in fifty lines of numpy, and members of a run that behave, or do not, as a test wants."""

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from backends import wire, worker
from backends.base import Optimiser, Replica, Variable
from backends.layout import layout_of
from backends.schedule import Schedule
from backends.server import Server
from backends.strategies import message
from backends.work import Work
from planner.certificates import Authority

PIXELS, CLASSES = 12, 3
LIMIT_S = 20.0


class Softmax(Replica):
    """Softmax regression with a bias. Its state: the running mean of the first two pixels."""

    accelerator = "cpu"
    variables = (
        Variable("dense/kernel", (PIXELS, CLASSES), 0, PIXELS * CLASSES),
        Variable("dense/bias", (CLASSES,), PIXELS * CLASSES, CLASSES),
    )
    state_variables = (Variable("norm/mean", (2,), 0, 2),)

    def __init__(self, seed: int = 0) -> None:
        size = (PIXELS + 1) * CLASSES
        self.weights = np.random.default_rng(seed).normal(0, 0.1, size).astype(np.float32)
        self.gradients = np.zeros(size, np.float32)
        self.state = np.zeros(2, np.float32)
        self._momentum = np.zeros(size, np.float32)

    def _probabilities(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inputs = images.reshape(len(images), -1) / np.float32(255)
        kernel, bias = np.split(self.weights, [PIXELS * CLASSES])
        scores = inputs @ kernel.reshape(PIXELS, CLASSES) + bias
        exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
        return inputs, exponents / exponents.sum(axis=1, keepdims=True)

    def gradient(
        self, images: np.ndarray, labels: np.ndarray, rate: float = 1.0, weight_decay: float = 0.0
    ) -> float:
        inputs, probabilities = self._probabilities(images)
        loss = -np.log(probabilities[np.arange(len(labels)), labels]).mean()
        probabilities[np.arange(len(labels)), labels] -= 1
        probabilities /= len(labels)
        plain = np.concatenate([(inputs.T @ probabilities).ravel(), probabilities.sum(axis=0)])
        self.gradients[:] = rate * (plain + weight_decay * self.weights)
        self.state += np.float32(0.1) * (inputs[:, :2].mean(axis=0) - self.state)
        return float(loss)

    def fetch(self) -> None:
        pass

    def load(self) -> None:
        pass

    def update(self, momentum: float) -> None:
        self._momentum[:] = momentum * self._momentum + self.gradients
        self.weights -= self._momentum

    def evaluate(self, images: np.ndarray, labels: np.ndarray) -> tuple[float, int]:
        _, probabilities = self._probabilities(images)
        right = probabilities.argmax(axis=1) == labels
        return float(-np.log(probabilities[np.arange(len(labels)), labels]).sum()), int(right.sum())

    def momentum(self) -> np.ndarray:
        return self._momentum.copy()

    def set_momentum(self, values: np.ndarray) -> None:
        self._momentum[:] = values


class Diverging(Softmax):
    """Gives a loss, or a gradient, that is not a finite number from its third step on."""

    def __init__(self, loss: float = 1.0, gradient: float = 0.0) -> None:
        super().__init__()
        self._bad = (loss, gradient)
        self._steps = 0

    def gradient(
        self, images: np.ndarray, labels: np.ndarray, rate: float = 1.0, weight_decay: float = 0.0
    ) -> float:
        self._steps += 1
        loss = super().gradient(images, labels, rate, weight_decay)
        if self._steps < 3:
            return loss
        self.gradients[-1] = self._bad[1]
        return self._bad[0]


def images(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images whose brightest third tells their label: uint8 (count, 2, 2, 3) and int64 (count,)."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, count)
    pixels = random.integers(0, 128, (count, CLASSES, PIXELS // CLASSES))
    pixels[np.arange(count), labels] += 100
    return pixels.reshape(count, 2, 2, 3).astype(np.uint8), labels.astype(np.int64)


def batches(skip: int = 0, seed: int = 1) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Endless batches of eight; ``skip`` of them are left out, as one does who goes on with a run."""
    return (images(8, seed * 10_000 + step) for step in itertools.count(skip))


TEST = images(64, 99)


def work(folder: Path, steps: int = 20, **changes: Any) -> Work:
    values = {
        "optimiser": Optimiser(0.1, 0.9, 0.001),
        "schedule": Schedule("cosine", steps, 2),
        "checkpoint_path": str(folder / "checkpoint.npz"),
        "description": {"model": "softmax"},
        **changes,
    }
    return Work(steps=steps, **values)


class Running:
    """A server that runs in a thread, with its authority, events and account."""

    def __init__(self, work: Work) -> None:
        self.authority = Authority()
        self.heartbeat_s = work.heartbeat_s
        self.events: list[dict[str, Any]] = []
        self._heard = threading.Condition()
        self.stopping = threading.Event()
        self.server = Server(work, self.authority.identity(wire.SERVER), self._emit)
        listener = wire.listen("127.0.0.1")
        self.port = listener.getsockname()[1]
        self._account: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run, args=(listener,), daemon=True)
        self._thread.start()

    def _run(self, listener: Any) -> None:
        self._account = self.server.run(listener, self.stopping.is_set)

    def _emit(self, event: dict[str, Any]) -> None:
        with self._heard:
            self.events.append(event)
            self._heard.notify_all()

    def named(self, kind: str) -> list[Any]:
        return [event[kind] for event in list(self.events) if kind in event]

    def await_event(self, kind: str, count: int = 1) -> None:
        with self._heard:
            assert self._heard.wait_for(lambda: len(self.named(kind)) >= count, LIMIT_S), (kind, self.events)

    def account(self) -> dict[str, Any]:
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive(), "the server hangs"
        return self._account

    def tls(self, name: str, authority: Authority | None = None) -> Any:
        return wire.context((authority or self.authority).identity(name), server_side=False)

    def connect(self, name: str) -> wire.Connection:
        return wire.connect("127.0.0.1", self.port, self.tls(name), LIMIT_S)

    def pulse(self, name: str, on_lost: Callable[[str], None] = lambda _: None) -> worker.Pulse:
        return worker.Pulse(self.connect(name), self.heartbeat_s, on_lost)


class Member(threading.Thread):
    """A worker that does what it should, in a thread."""

    def __init__(
        self, running: Running, name: str, replica: Replica | None = None, data: Any = None, sender: Any = None
    ) -> None:
        super().__init__(daemon=True)
        self.sender = sender
        self.replica = replica or Softmax()
        self.spent: worker.Spent | None = None
        self.failure: str | None = None
        self.bytes = 0
        self._running = running
        self._name = name
        self._data = data or batches()
        self.start()

    def run(self) -> None:
        try:
            connection = self._running.connect(self._name)
            pulse = self._running.pulse(self._name)
            try:
                self.spent = worker.run(connection, self.replica, self._data, TEST, sender=self.sender)
            finally:
                self.bytes = connection.sent_bytes + connection.received_bytes
                pulse.close()
                connection.close()
        except wire.WireError as error:
            self.failure = str(error)

    def end(self) -> worker.Spent:
        self.join(LIMIT_S)
        assert self.spent is not None, self.failure or "the worker hangs"
        return self.spent


class Puppet:
    """A worker that does only what a test tells it to; it says its heart beats until told otherwise."""

    def __init__(self, running: Running, name: str, beating: bool = True) -> None:
        self.replica = Softmax()
        self.connection = running.connect(name)
        self.pulse = running.pulse(name) if beating else None
        self.connection.send({"layout": layout_of(self.replica).encode()})
        answer = self.connection.receive(self._state).meta
        if answer["initial"]:
            self.connection.send({}, wire.as_bytes((self.replica.weights, self.replica.state)))

    def _state(self, meta: dict[str, Any]) -> Any:
        return () if meta["initial"] else wire.as_bytes((self.replica.state,))

    def take(self) -> dict[str, Any]:
        """Receive a ticket, with the weights (and state) that come with it."""
        pulls = []

        def payload(meta: dict[str, Any]) -> Any:
            if meta["kind"] == "finish":
                return ()
            pulls.append(message.buffers(meta["weights"], self.replica.weights.size))
            return wire.as_bytes((*pulls[0].arrays, *((self.replica.state,) if meta["kind"] == "evaluate" else ())))

        meta = self.connection.receive(payload).meta
        for pull in pulls:
            message.put(pull, self.replica.weights)
        return meta

    def give(self, loss: Any = 1.0, gradient: float = 0.0) -> None:
        """Answer a step."""
        self.replica.gradients[:] = gradient
        head = message.dense(self.replica.gradients).head
        arrays = wire.as_bytes((self.replica.gradients, self.replica.state))
        self.connection.send({"loss": loss, "gradient": head}, arrays)

    def stop_beating(self) -> None:
        if self.pulse is not None:
            self.pulse.close()

    def leave(self) -> None:
        """Gone, as a killed process is."""
        self.stop_beating()
        self.connection.abort()
        self.connection.close()
