"""A backend module as ``frameworks.base.framework`` gives it, for users' models in numpy."""

import platform
from importlib import metadata

from backends import models
from backends.jobs.job import Job
from backends.models import user
from backends.models.layers import Shape
from tests.backends.fakes import Softmax, softmax_job


def version() -> str:
    """That of the torch installed here, which a device's facts state as well."""
    return metadata.version("torch")


def accelerator() -> tuple[str, str]:
    return "cpu", platform.machine()


def collectives() -> tuple[str, ...]:
    return ()


def forget_peak_memory() -> None:
    """There is no accelerator."""


def accelerator_memory() -> None:
    """There is no accelerator."""


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError)


def require_process_group() -> None:
    """As a torch without torch.distributed."""
    raise ValueError("this torch was built without torch.distributed")


def known_job(
    model: str, input_shape: Shape | None = None, classes: int | None = None, seed: int = 0, threads: int = 1
) -> Job:
    """The job of a user's model, whose function returns a Softmax and its input shape."""
    made, shape = user.returned(model, Softmax.__name__, lambda result: isinstance(result, Softmax))
    models.agree(model, shape, made.classes, input_shape, classes)
    return softmax_job(made)


def replica(job: Job) -> Softmax:
    """A Softmax is a replica already."""
    assert isinstance(job.model, Softmax)
    return job.model
