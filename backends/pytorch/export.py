"""A trained replica is exported as its module, with inputs to trace it with."""

from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from backends.jobs.job import LoadedJob
from backends.pytorch.jobs import as_tensors
from backends.pytorch.replica import TorchReplica


class Exported(NamedTuple):
    """A module on the CPU, in evaluation, with arrays of its own.

    inputs: what it takes for a batch of so many samples. names: of these. output: name of its own.
    """

    module: nn.Module
    inputs: Callable[[int], Tuple[Any, ...]]
    names: List[str]
    output: str


class TensorLike(NamedTuple):
    """A tensor's type, and its shape for a batch of one."""

    dtype: str
    shape: Tuple[int, ...]


class ImageClassifier(nn.Module):
    """Scales images, then runs the trained module and a softmax.

    Maps (batch, height, width, channels) to probabilities, (batch, classes). Images are as the data
    set has them: bytes, or floats that are not scaled.
    dtype: of the data set's images.
    """

    def __init__(self, network: nn.Module, dtype: str) -> None:
        super().__init__()
        self.network = network
        self.scales = dtype == "uint8"

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        planes = images.permute(0, 3, 1, 2).contiguous().float()
        if self.scales:
            # Not in place, as in training: of float images, this tensor may be the caller's own.
            planes = planes * (2 / 255.0) - 1.0
        return functional.softmax(self.network(planes), 1)


def of_images(replica: TorchReplica, dtype: str) -> Exported:
    """The replica's module, which it takes over, with scaling before it and a softmax behind it.

    dtype: of the data set's images.
    """
    module = ImageClassifier(detached(replica), dtype)
    shape = tuple(replica.input_shape)
    return Exported(module.eval(), lambda count: (_images(shape, dtype, count),), ["images"], "probabilities")


def of_job(replica: TorchReplica, loaded: LoadedJob) -> Exported:
    """The module of a user's job; its inputs are those of the first samples of the test set.

    Raises ValueError where the module takes other things than tensors.
    """
    module = detached(replica)
    count = len(_job_inputs(module, loaded, 1))
    names = ["input_%d" % place for place in range(count)]
    return Exported(module, lambda samples: _job_inputs(module, loaded, samples), names, "output")


def signature(exported: Exported) -> Tuple[List[TensorLike], TensorLike]:
    """The inputs of the module, and its output, for one sample."""
    inputs = exported.inputs(1)
    with torch.no_grad():
        output = exported.module(*inputs)
    first = output[0] if isinstance(output, (tuple, list)) else output
    return [_like(tensor) for tensor in inputs], _like(first)


def arrays(replica: TorchReplica) -> Dict[str, np.ndarray]:
    """What ``load_state_dict`` of the replica's module takes, by name."""
    module = detached(replica)
    return {name: tensor.contiguous().numpy() for name, tensor in module.state_dict().items()}


def detached(replica: TorchReplica) -> nn.Module:
    """The replica's module on the CPU, in evaluation, with arrays of its own; takes it over."""
    module = replica.module.cpu().eval()
    for tensor in (*module.parameters(), *module.buffers()):
        tensor.data = tensor.data.clone()  # in the replica it is part of one flat tensor, which would be saved whole
        tensor.requires_grad_(False)
    return module


def _images(input_shape: Tuple[int, ...], dtype: str, count: int) -> torch.Tensor:
    shape, generator = (count,) + input_shape, torch.Generator().manual_seed(count)
    if dtype == "uint8":
        return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    return torch.randn(shape, generator=generator)


def _job_inputs(module: nn.Module, loaded: LoadedJob, count: int) -> Tuple[Any, ...]:
    """What the job's forward gives the module for the first samples of the test set."""
    if loaded.job.state is not None:
        raise ValueError("its forward takes a state from batch to batch; export to .safetensors")
    batch = next(batch for _, batch in loaded.test.batches(count))
    seen: List[Tuple[Any, ...]] = []
    hook = module.register_forward_pre_hook(lambda module, inputs: seen.append(inputs))
    try:
        with torch.no_grad():
            loaded.job.forward(module, as_tensors(batch))
    finally:
        hook.remove()
    if not seen or not seen[0] or not all(isinstance(value, torch.Tensor) for value in seen[0]):
        raise ValueError("its forward does not call the model with tensors alone; export to .safetensors")
    return seen[0]


def _like(tensor: torch.Tensor) -> TensorLike:
    return TensorLike(str(tensor.dtype).replace("torch.", ""), tuple(tensor.shape))
