"""A framework in fifty lines of numpy, its data, and what one process would learn from them."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from backends.data.loader import ArraySamples, BatchSource
from backends.data.micro_batches import BatchPart, SplitBatch
from backends.frameworks.base import Replica
from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import SGD, SLOT_NAMES, OptimizerSettings, Slots
from backends.jobs.job import ACCURACY, Job
from backends.optimizers import registry
from backends.optimizers.base import FlatOptimizer
from backends.streams.spec import StreamSpec
from backends.training.checkpoint import Checkpoint
from backends.training.lr_schedule import RateSchedule
from backends.training.run_settings import RunSettings
from backends.training.run_spec import Checkpoints, RunSpec

PIXELS, CLASSES = 12, 3
BATCH = 8


class Softmax(Replica):
    """Softmax regression with a bias. Its state: the running mean of the first two pixels."""

    accelerator = "cpu"
    state_variables = (Variable("norm/mean", (2,), 0, 2),)

    def __init__(self, seed: int = 0, input_shape: tuple[int, ...] = (2, 2, 3), classes: int = CLASSES) -> None:
        self.input_shape, self.classes = input_shape, classes
        pixels = math.prod(input_shape)
        size = (pixels + 1) * classes
        self.variables = (
            Variable("dense/kernel", (pixels, classes), 0, pixels * classes),
            Variable("dense/bias", (classes,), pixels * classes, classes),
        )
        self.weights = np.random.default_rng(seed).normal(0, 0.1, size).astype(np.float32)
        self.gradients = np.zeros(size, np.float32)
        self.state = np.zeros(2, np.float32)
        self._optimizers: dict[tuple[str, ...], FlatOptimizer] = {}

    def _probabilities(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inputs = images.reshape(len(images), -1) / np.float32(255)
        kernel, bias = np.split(self.weights, [self.variables[0].size])
        scores = inputs @ kernel.reshape(self.variables[0].shape) + bias
        exponents = np.exp(scores - scores.max(axis=1, keepdims=True))
        return inputs, exponents / exponents.sum(axis=1, keepdims=True)

    def gradient(self, batch: Any, rate: float = 1.0, weight_decay: float = 0.0, adds: bool = False) -> float:
        images, labels = batch
        inputs, probabilities = self._probabilities(images)
        loss = -np.log(probabilities[np.arange(len(labels)), labels]).mean()
        probabilities[np.arange(len(labels)), labels] -= 1
        probabilities /= len(labels)
        plain = np.concatenate([(inputs.T @ probabilities).ravel(), probabilities.sum(axis=0)])
        self.gradients[:] = adds * self.gradients + rate * (plain + weight_decay * self.weights)
        self.state += np.float32(0.1) * (inputs[:, :2].mean(axis=0) - self.state)
        return float(loss)

    def gradient_norm(self) -> float:
        return float(np.linalg.norm(self.gradients))

    def rescale(self, factor: float, decay: float) -> None:
        self.gradients[:] = factor * self.gradients + decay * self.weights

    def fetch(self) -> None:
        pass

    def load(self) -> None:
        pass

    def update(self, optimizer: OptimizerSettings) -> None:
        self._optimizer(optimizer.kind).apply(self.weights, self.gradients, optimizer)

    def evaluate(self, batch: Any) -> tuple[float, dict[str, float]]:
        images, labels = batch
        _, probabilities = self._probabilities(images)
        right = probabilities.argmax(axis=1) == labels
        loss = -np.log(probabilities[np.arange(len(labels)), labels])
        return float(loss.mean()), {ACCURACY: float(right.mean())}

    def slots(self, kind: str) -> Slots:
        return {name: values.copy() for name, values in self._optimizer(kind).slots.items()}

    def set_slots(self, slots: Slots) -> None:
        kind = next(kind for kind, names in SLOT_NAMES.items() if names == tuple(slots))
        self._optimizer(kind).slots = {name: values.copy() for name, values in slots.items()}

    def _optimizer(self, kind: str) -> FlatOptimizer:
        return self._optimizers.setdefault(SLOT_NAMES[kind], registry.build(kind, self.variables))


class Faulty(Softmax):
    """Does something else in one of its calls, by default fails.

    what: "gradient", "update" or "evaluate". call: counted from 1.
    """

    def __init__(self, what: str, call: int, instead: Callable[[], None] = lambda: None, seed: int = 0) -> None:
        super().__init__(seed)
        self._what, self._call, self._instead = what, call, instead
        self._calls = 0

    def _count(self, what: str) -> None:
        self._calls += what == self._what
        if what == self._what and self._calls == self._call:
            self._instead()
            raise ArithmeticError("a faulty " + what)

    def gradient(self, batch: Any, rate: float = 1.0, weight_decay: float = 0.0, adds: bool = False) -> float:
        self._count("gradient")
        return super().gradient(batch, rate, weight_decay, adds)

    def update(self, optimizer: OptimizerSettings) -> None:
        if self._what == "update":
            self.weights[0] += 1.0  # half of what it should do
        self._count("update")
        super().update(optimizer)

    def evaluate(self, batch: Any) -> tuple[float, dict[str, float]]:
        self._count("evaluate")
        return super().evaluate(batch)


class FaultyBackward(Faulty):
    """Does something else in a gradient whose forward pass has changed the state already."""

    def gradient(self, batch: Any, rate: float = 1.0, weight_decay: float = 0.0, adds: bool = False) -> float:
        loss = Softmax.gradient(self, batch, rate, weight_decay, adds)
        self._count("gradient")
        return loss


class Diverging(Softmax):
    """Gives a loss, or a gradient, that is not a finite number after its first good steps."""

    def __init__(self, loss: float = 1.0, gradient: float = 0.0, good: int = 2) -> None:
        super().__init__()
        self._bad = (loss, gradient)
        self._good = good
        self._steps = 0

    def gradient(self, batch: Any, rate: float = 1.0, weight_decay: float = 0.0, adds: bool = False) -> float:
        self._steps += 1
        loss = super().gradient(batch, rate, weight_decay, adds)
        if self._steps <= self._good:
            return loss
        self.gradients[-1] = self._bad[1]
        return self._bad[0]


def softmax_job(replica: Softmax) -> Job:
    """A job whose model is a replica already, which computes its own loss."""
    return Job(replica, forward=lambda *_: (None, None), loss=lambda *_: 0.0, metrics={})


def images(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images whose brightest third tells their label: uint8 (count, 2, 2, 3) and int64 (count,)."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, count)
    pixels = random.integers(0, 128, (count, CLASSES, PIXELS // CLASSES))
    pixels[np.arange(count), labels] += 100
    return pixels.reshape(count, 2, 2, 3).astype(np.uint8), labels.astype(np.int64)


def split(batch: tuple[np.ndarray, ...], most: int) -> SplitBatch:
    """A batch in parts of at most ``most`` samples."""
    cuts = range(0, len(batch[0]), most)
    parts = [tuple(array[start : start + most] for array in batch) for start in cuts]
    return SplitBatch(tuple(BatchPart(len(part[0]), part) for part in parts))


class DrawnBatches(BatchSource):
    """Endless batches of ``batch`` images, each drawn from its number.

    ``before`` is called before each batch.
    """

    def __init__(self, skip: int = 0, seed: int = 1, before: Callable[[], Any] = lambda: None) -> None:
        self.batch = BATCH
        self._before = before
        self._next = seed * 10_000 + skip

    def __next__(self) -> tuple[np.ndarray, np.ndarray]:
        self._before()
        self._next += 1
        return images(self.batch, self._next - 1)


def train_on_all(
    steps: int, batches: Iterable[Any], momentum: float = 0.0, rate: float = 0.1, replica: Replica | None = None
) -> np.ndarray:
    """The weights of one process whose every step takes the batches of all workers together."""
    one, sources = replica or Softmax(), list(batches)
    for _ in range(steps):
        together = [np.concatenate(part) for part in zip(*(next(each) for each in sources), strict=True)]
        one.gradient(together, rate)
        one.update(OptimizerSettings(momentum=momentum))
    one.fetch()
    return one.weights


def train_on_all_with(optimizer: OptimizerSettings, steps: int, batches: Iterable[Any]) -> np.ndarray:
    """As ``train_on_all``, with an optimizer that takes plain gradients."""
    replica, sources = Softmax(), list(batches)
    made = registry.build(optimizer.kind, replica.variables)
    for _ in range(steps):
        together = [np.concatenate(part) for part in zip(*(next(each) for each in sources), strict=True)]
        replica.gradient(together)
        made.apply(replica.weights, replica.gradients, optimizer)
    return replica.weights


def arrays_of(saved: Checkpoint) -> dict[str, np.ndarray]:
    """All arrays of a checkpoint but those of members, by name."""
    return {"weights": saved.weights, "state": saved.state, **saved.slots}


TEST = ArraySamples(*images(64, 99))


def run_spec(folder: Path, steps: int = 20, **changes: Any) -> RunSpec:
    """A run with checkpoints in a folder.

    changes: to fields of the specification, of its settings (a stream as its text) and of its
        checkpoints.
    """
    if changes.get("stream"):
        changes["stream"] = StreamSpec.from_text(changes["stream"])
    settings = RunSettings("softmax", steps=steps, batch=BATCH)
    settings = settings._replace(**{name: changes.pop(name) for name in settings._fields if name in changes})
    checkpoints = Checkpoints(
        changes.pop("checkpoint_path", str(folder / "checkpoint.npz")), changes.pop("checkpoint_every", 0),
        changes.pop("resume", None), changes.pop("description", {"model": "softmax"}),
        changes.pop("checkpoint_every_s", 0.0),
    )  # fmt: skip
    optimizer = changes.pop("optimizer", OptimizerSettings(0.1, 0.9, 0.001))
    if settings.strategy.optimizer.name != SGD:
        optimizer = optimizer._replace(kind=settings.strategy.optimizer.name)
    schedule = changes.pop("schedule", RateSchedule("cosine", steps, 2))
    return RunSpec(settings, optimizer, schedule, checkpoints, **changes)
