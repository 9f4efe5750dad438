"""The data of a run: images that are sent in shards, or a job that reads its own."""

import functools
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from backends.data import dataset as data
from backends.data.partition import own_samples
from backends.protocol.member_specs import DataPart, ReplicaSpec
from backends.protocol.orders import FindFile
from backends.streams.sample_codec import ArrayCodec, ArrayType
from planner.agents.client import AgentClient
from planner.console import plain
from planner.errors import RunError
from planner.fleet.device import Device
from planner.jobs.data_folders import require_equal_data
from planner.jobs.reference import JobReference
from planner.jobs.shipping import ship_code
from planner.plan.file import Plan
from planner.train import picture_folders

FIND_TIMEOUT_S = 60.0


class Shard(NamedTuple):
    """A file with a part of the data, to be stored on a device. digest: SHA-256 of its content."""

    digest: str
    content: bytes

    @property
    def name(self) -> str:
        """In the device's cache, equal for equal content."""
        return f"data-{self.digest[:16]}.npz"


class Placed(NamedTuple):
    """A member's model and data, as they are on its device; fields as in ``MemberSpec``."""

    replica: ReplicaSpec
    train: str = ""
    test: str = ""
    part: DataPart | None = None


class TrainingData(ABC):
    """What the members of a run train on.

    samples: of the training data; None for a job, whose plan knows them.
    test_samples: None for a job.
    classes, input_shape: of known models' images; None for a job.
    job: that brings the data; None for images.
    """

    samples: int | None = None
    test_samples: int | None = None
    classes: int | None = None
    input_shape: tuple[int, ...] | None = None
    job: JobReference | None = None

    @property
    def sample_bytes(self) -> int | None:
        """Of one training sample that is given to another device; None where not known here."""
        return None

    def described(self) -> dict[str, Any]:
        """What a checkpoint tells of the data beside the model: JSON values."""
        return {}

    def check_parts(self, parts: Mapping[str, DataPart]) -> None:  # noqa: B027 - not where labels are on devices
        """Raises RunError where it is known here that the data cannot be divided so."""

    def check(self, agents: Mapping[str, AgentClient], devices: Mapping[str, Device]) -> None:  # noqa: B027
        """Raises PlannerError where data that are on the devices already do not fit together."""

    @abstractmethod
    def place(
        self, agent: AgentClient, device: Device, plan: Plan, part: DataPart, on_send: Callable[[int], None]
    ) -> Placed:
        """Bring a member's model and its part of the data to its device, as far as it lacks them.

        part: ``seed`` is that of the initial weights as well.
        on_send: told the bytes that a device without any of it gets. Raises RemoteError.
        """


class ShippedImages(TrainingData):
    """A data set of this machine, of which each member gets its shard and the test set."""

    def __init__(self, dataset: data.Dataset) -> None:
        self.samples, self.test_samples = len(dataset.train_labels), len(dataset.test_labels)
        self.classes = dataset.classes
        self.input_shape = tuple(dataset.input_shape)
        self._dataset = dataset

    @functools.cached_property
    def _test(self) -> Shard:
        return packed(self._dataset.test_images, self._dataset.test_labels)

    def check_parts(self, parts: Mapping[str, DataPart]) -> None:
        """See TrainingData. All members' parts come of one division."""
        part = next(iter(parts.values()))
        try:
            self._own(part)
        except ValueError as error:
            raise RunError(f"--partition {part.partition}: {error}") from error

    @property
    def sample_bytes(self) -> int:
        pixels = ArrayType(np.dtype(self._dataset.image_dtype).str, tuple(self._dataset.input_shape))
        return ArrayCodec((pixels, ArrayType("<i8", ()))).sample_bytes

    def described(self) -> dict[str, Any]:
        images = self._dataset
        return {
            "input_shape": list(images.input_shape), "classes": images.classes, "image_dtype": images.image_dtype
        }  # fmt: skip

    def place(
        self, agent: AgentClient, device: Device, plan: Plan, part: DataPart, on_send: Callable[[int], None]
    ) -> Placed:
        images = self._dataset
        own = self._own(part)
        shard = packed(images.train_images[own], images.train_labels[own])
        on_send(len(shard.content) + len(self._test.content))
        shape, framework = tuple(images.input_shape), plan.frameworks[device.name]
        compute = plan.computes[device.name]
        spec = ReplicaSpec(framework, plan.run.model, shape, images.classes, part.seed, compute=compute)
        return Placed(ship_code(agent, device, spec), store_once(agent, shard), store_once(agent, self._test))

    def _own(self, part: DataPart) -> np.ndarray:
        """The positions of a member's images, (n,) int64. Raises ValueError as ``own_samples``."""
        labels = self._dataset.train_labels
        return own_samples(part, len(labels), lambda: labels).positions


class JobData(TrainingData):
    """A user's job, which reads its data on each device; members share them by position."""

    job: JobReference

    def __init__(self, job: JobReference) -> None:
        self.job = job

    def check(self, agents: Mapping[str, AgentClient], devices: Mapping[str, Device]) -> None:
        require_equal_data(agents, devices)

    def place(
        self, agent: AgentClient, device: Device, plan: Plan, part: DataPart, on_send: Callable[[int], None]
    ) -> Placed:
        on_send(sum(map(len, self.job.project.contents.values())))
        framework = plan.frameworks[device.name]
        spec = ReplicaSpec(framework, plan.run.model, seed=part.seed, compute=plan.computes[device.name])
        return Placed(ship_code(agent, device, spec, self.job), part=part)


def load_dataset(directory: str) -> data.Dataset:
    """The data set in a directory; says what is left out. Raises RunError for what is missing."""
    try:
        if not picture_folders.present(directory):
            return data.load(directory)
        return picture_folders.read(directory, lambda note: plain(stderr=True).print(note, soft_wrap=True))
    except (ValueError, OSError) as error:
        raise RunError(str(error)) from error


def packed(images: np.ndarray, labels: np.ndarray) -> Shard:
    """A file of images and labels."""
    content = data.pack(images, labels)
    return Shard(hashlib.sha256(content).hexdigest(), content)


def store_once(agent: AgentClient, shard: Shard) -> str:
    """Send a file to a device unless it is there already, undamaged; returns its path there."""
    path: str | None = agent.call(FindFile(shard.name, shard.digest), FIND_TIMEOUT_S)
    return path or agent.store(shard.name, shard.content)
