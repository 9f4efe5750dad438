"""A framework in fifty lines of numpy, and workers of a server that behave, or do not, as a test wants."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from backends.frameworks.base import OptimizerSettings, Replica, Variable
from backends.network import framing, heartbeat
from backends.optimizers import lars
from backends.server import worker
from backends.server.parameter_server import ParameterServer
from backends.strategies import message
from backends.training import step
from backends.training.layout import layout_of
from backends.training.lr_schedule import RateSchedule
from backends.training.run_spec import RunSpec
from tests.backends.hosting import Hosting, Participant

PIXELS, CLASSES = 12, 3
BATCH = 8


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

    def gradient(self, images: np.ndarray, labels: np.ndarray, rate: float = 1.0, weight_decay: float = 0.0) -> float:
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

    def gradient(self, images: np.ndarray, labels: np.ndarray, rate: float = 1.0, weight_decay: float = 0.0) -> float:
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


class Drawn:
    """Endless batches of ``batch`` images, each drawn by its number; ``before`` is called before each."""

    def __init__(self, skip: int = 0, seed: int = 1, before: Callable[[], Any] = lambda: None) -> None:
        self.batch = BATCH
        self._before = before
        self._at = seed * 10_000 + skip

    def __iter__(self) -> "Drawn":
        return self

    def __next__(self) -> tuple[np.ndarray, np.ndarray]:
        self._before()
        self._at += 1
        return images(self.batch, self._at - 1)


def union(
    steps: int, drawn: Iterable[Any], momentum: float = 0.0, rate: float = 0.1, replica: Replica | None = None
) -> np.ndarray:
    """The weights of one process that takes the batches of all workers together in each of its steps."""
    one, sources = replica or Softmax(), list(drawn)
    for _ in range(steps):
        together = [np.concatenate(part) for part in zip(*(next(each) for each in sources), strict=True)]
        one.gradient(*together, rate=rate)
        one.update(momentum)
    one.fetch()
    return one.weights


def union_with_lars(steps: int, drawn: Iterable[Any], optimiser: OptimizerSettings) -> np.ndarray:
    """As ``union``, with LARS."""
    replica, sources = Softmax(), list(drawn)
    velocity = np.zeros_like(replica.weights)
    for _ in range(steps):
        together = [np.concatenate(part) for part in zip(*(next(each) for each in sources), strict=True)]
        replica.gradient(*together)
        lars.apply(replica.weights, velocity, replica.gradients, replica.variables, optimiser)
    return replica.weights


TEST = images(64, 99)


def work(folder: Path, steps: int = 20, **changes: Any) -> RunSpec:
    values = {
        "optimiser": OptimizerSettings(0.1, 0.9, 0.001),
        "schedule": RateSchedule("cosine", steps, 2),
        "checkpoint_path": str(folder / "checkpoint.npz"),
        "description": {"model": "softmax"},
        "batch": BATCH,
        **changes,
    }
    return RunSpec(steps=steps, **values)


class Running(Hosting):
    """A server that runs in a thread."""

    def __init__(self, work: RunSpec) -> None:
        super().__init__(ParameterServer, work)

    def pulse(self, name: str, on_lost: Callable[[str], None] = lambda _: None) -> heartbeat.Heartbeat:
        return heartbeat.Heartbeat(self.connect(name), self.work.heartbeat_s, on_lost)


class Member(Participant):
    """A worker that does what it should, in a thread."""

    def __init__(
        self, running: Running, name: str, replica: Replica | None = None, data: Any = None, sender: Any = None,
        slowdown: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.replica = replica or Softmax()
        self.drawn = data or Drawn()
        self.spent: step.TimeSpent | None = None
        self.bytes = 0
        self._running, self._name, self._sender, self._slowdown = running, name, sender, slowdown
        self._connection: framing.Connection | None = None
        self.start()

    def take_part(self) -> None:
        self._connection = connection = self._running.connect(self._name)
        pulse = self._running.pulse(self._name)
        try:
            self.spent = worker.run(connection, self.replica, self.drawn, TEST, self._slowdown, sender=self._sender)
        finally:
            self.bytes = connection.sent_bytes + connection.received_bytes
            pulse.close()
            connection.close()

    def cut(self) -> None:
        """Gone, as a killed process is."""
        assert self._connection is not None, "it has not begun"
        self._connection.abort()

    def end(self) -> step.TimeSpent:
        self.await_end()
        assert self.spent is not None
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
            self.connection.send({}, framing.as_bytes((self.replica.weights, self.replica.state)))

    def _state(self, meta: dict[str, Any]) -> Any:
        return () if meta["initial"] else framing.as_bytes((self.replica.state,))

    def take(self) -> dict[str, Any]:
        """Receive a ticket, with the weights (and state) that come with it."""
        pulls = []

        def payload(meta: dict[str, Any]) -> Any:
            if meta["kind"] == "finish":
                return ()
            pulls.append(message.buffers(meta["weights"], self.replica.weights.size))
            return framing.as_bytes((*pulls[0].arrays, *((self.replica.state,) if meta["kind"] == "evaluate" else ())))

        meta = self.connection.receive(payload).meta
        for pull in pulls:
            message.put(pull, self.replica.weights)
        return meta

    def give(self, loss: Any = 1.0, gradient: float = 0.0) -> None:
        """Answer a step."""
        self.replica.gradients[:] = gradient
        head = message.dense(self.replica.gradients).head
        arrays = framing.as_bytes((self.replica.gradients, self.replica.state))
        self.connection.send({"loss": loss, "seconds": 0.01, "gradient": head}, arrays)

    def stop_beating(self) -> None:
        if self.pulse is not None:
            self.pulse.close()

    def leave(self) -> None:
        """Gone, as a killed process is."""
        self.stop_beating()
        self.connection.abort()
        self.connection.close()
