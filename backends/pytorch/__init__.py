"""The PyTorch backend builds described models natively, in flat buffers (torch 1.10 or later)."""

import importlib
import platform
import socket
from typing import Any, Callable, Optional, Tuple, Union

import torch
from torch import distributed, nn

from backends import models
from backends.frameworks.base import Replica
from backends.frameworks.device import CUDA, MPS
from backends.frameworks.process_group import SHARDING, GroupSettings, ProcessGroup
from backends.jobs.job import Job, LoadedJob
from backends.jobs.user_job import UserJob
from backends.models import user
from backends.models.layers import Model, Shape
from backends.pytorch import accelerators, jobs, layers
from backends.pytorch.gpu_memory import accelerator_memory as accelerator_memory
from backends.pytorch.gpu_memory import forget_peak_memory as forget_peak_memory
from backends.pytorch.gpu_memory import is_out_of_memory as is_out_of_memory
from backends.pytorch.images import image_job
from backends.pytorch.live_bytes import live_bytes as live_bytes
from backends.pytorch.replica import TorchReplica
from profilers import device_facts
from profilers.file_tree import FileTree


def version() -> str:
    """Version of torch."""
    return str(torch.__version__)


def accelerator() -> Tuple[str, str]:
    """("cuda", GPU name), or ("mps" or "cpu", processor name)."""
    kind = accelerators.kind()
    if kind == CUDA:
        return kind, torch.cuda.get_device_name(0)
    return kind, device_facts.processor(FileTree("/")) or platform.machine()


def collectives() -> Tuple[str, ...]:
    """What torch.distributed has: nothing on Apple GPUs or in NVIDIA's wheels, which lack it."""
    if not distributed.is_available() or accelerators.kind() == MPS:
        return ()
    nccl = ("nccl",) if accelerators.kind() == CUDA and distributed.is_nccl_available() else ()
    return ("gloo",) + nccl + ((SHARDING,) if _has_fully_shard() else ())


def _has_fully_shard() -> bool:
    try:
        fsdp = importlib.import_module("torch.distributed.fsdp")
    except ImportError:  # before torch 1.12
        return False
    # Without an exchange of one's own, some versions add gradients up over gloo where they average.
    return hasattr(getattr(fsdp, "FSDPModule", None), "set_custom_reduce_scatter")


def known_job(
    model: Union[str, Model],
    input_shape: Optional[Shape] = None,
    classes: Optional[int] = None,
    seed: int = 0,
    threads: int = 1,
) -> Job:
    """The job of a model of images, see ``frameworks.base.framework``.

    A user's function returns (torch.nn.Module, (height, width, channels)). The module maps float32
    (batch, channels, height, width) to (batch, classes).
    """
    torch.set_num_threads(threads)
    jobs.seed_everything(seed)
    if isinstance(model, str) and models.is_user_model(model):
        module, shape, outputs = _user_module(model)
        models.agree(model, shape, outputs, input_shape, classes)
        return image_job(module, shape, outputs)
    description = models.described(model, input_shape, classes)
    weights = torch.from_numpy(models.initial_weights(description, seed))  # first: it takes as much again
    module = layers.build(description.layers, description.input_shape)
    nn.utils.vector_to_parameters(weights, module.parameters())
    return image_job(module, description.input_shape, description.classes)


def load_job(load: Callable[[], UserJob], seed: int, threads: int) -> LoadedJob:
    """A user's job for ``replica``, see ``frameworks.base.framework``."""
    torch.set_num_threads(threads)
    jobs.seed_everything(seed)
    return jobs.load_job(load())


def replica(job: Job) -> TorchReplica:
    """A replica of a job on the first GPU or else on the CPU, see ``accelerators``."""
    return TorchReplica(job)


def sharded_replica(job: Job) -> Replica:
    """A replica of a job of which each member of a ``process_group`` holds a share.

    Raises ValueError where this torch cannot.
    """
    require_sharding()
    from backends.pytorch.sharded_replica import ShardedReplica

    return ShardedReplica(job)


def build(*arguments: Any, **named: Any) -> TorchReplica:
    """A replica of a ``known_job``, with the arguments of that."""
    return replica(known_job(*arguments, **named))


def require_process_group() -> None:
    """Get ready to join a process group. Raises ValueError where this torch cannot."""
    if not distributed.is_available():
        raise ValueError(
            "this torch (%s) was built without torch.distributed, as NVIDIA's wheels for Jetson are; "
            "leave --engine out, or plan without this device" % version()
        )
    if accelerators.kind() == MPS:
        raise ValueError(
            "torch.distributed does not exchange what an Apple GPU computes; leave --engine out, "
            'or set device = "cpu" in the fleet file'
        )
    from backends.pytorch.torch_group import rehearse

    rehearse()


def require_sharding() -> None:
    """Raises ValueError where this torch has no FSDP2, of which members hold shares of a model."""
    if SHARDING not in collectives():
        raise ValueError(
            "this torch (%s) has no FSDP2 whose exchange can be set, which newer ones have; "
            "leave shard=full out, or plan without this device" % version()
        )


def group_cpu_s(replica: TorchReplica, draw: Callable[[], Callable[[Any], Any]]) -> Optional[float]:
    """Processor seconds that a process group adds to a gradient, its exchange aside.

    draw: draws a batch, and gives a function that computes its gradient by way of a function of
        its parts (``training.step.ComputePart``).
    None on an accelerator, which it does not delay, and where it cannot be measured.
    """
    if replica.accelerator != "cpu":
        return None
    from backends.pytorch.group_cpu_time import own_cpu_s

    return own_cpu_s(replica, draw)


def process_group(settings: GroupSettings, listener: Optional[socket.socket] = None) -> ProcessGroup:
    """Join the other members, see ``TorchGroup``; after ``require_process_group``."""
    if settings.is_sharded:
        from backends.pytorch.sharded_group import ShardedGroup

        return ShardedGroup(settings, listener)
    from backends.pytorch.torch_group import TorchGroup

    return TorchGroup(settings, listener)


def _user_module(model: str) -> Tuple[nn.Module, Shape, int]:
    """The user's module, checked with one black image, its input shape and its classes."""
    module, shape = user.returned(model, "torch.nn.Module", lambda result: isinstance(result, nn.Module))
    height, width, channels = shape
    module.float().eval()
    with torch.no_grad():
        output = module(torch.zeros(1, channels, height, width))
    return module, shape, user.outputs(model, output)
