"""A trained module is exported as a graph of tensors, whose batch axes are found by calling it."""

import itertools
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import torch
from torch import nn
from torch.nn import functional

from backends.frameworks.batch_axes import COUNTS, TensorLike, growing_axes, tensor_like
from backends.jobs.job import LoadedJob
from backends.pytorch.jobs import as_tensors
from backends.pytorch.module_calls import ModuleCall, OfTensors, output_tensors
from backends.pytorch.replica import TorchReplica

#: So many batches of each size are compared: values may decide what is computed, or be of other
#: lengths.
OF_EACH_SIZE = 3


class Batch(NamedTuple):
    """What a module takes for some samples, and how many these are."""

    samples: int
    tensors: Tuple[torch.Tensor, ...]


class Exported(NamedTuple):
    """A module on the CPU, in evaluation, that takes tensors and gives one or a tuple of them.

    batches: of different sizes, the smallest last; a graph is made with the first.
    names, outputs: of what it takes and gives.
    """

    module: nn.Module
    batches: List[Batch]
    names: List[str]
    outputs: List[str]


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
    batches = [Batch(count, (_images(tuple(replica.input_shape), dtype, count),)) for count in COUNTS]
    return Exported(ImageClassifier(detached(replica), dtype).eval(), batches, ["images"], ["probabilities"])


def calls_of(module: nn.Module, loaded: LoadedJob) -> List[Tuple[int, ModuleCall]]:
    """How a job's forward calls the module for the first samples of the test set.

    Batches of different sizes, the smallest last, each with the number of its samples.
    Raises what the forward does, and ValueError where it does not call the module.
    """
    found: List[Tuple[int, ModuleCall]] = []
    for count in COUNTS:
        for samples, batch in itertools.islice(loaded.test.batches(count), OF_EACH_SIZE):
            try:
                found.append((samples, _call(module, loaded, batch)))
            except Exception:  # noqa: BLE001 - of the user's own code, which may need more than one sample
                if len({samples for samples, _ in found}) < 2:
                    raise
    return found


def of_calls(module: nn.Module, calls: Sequence[Tuple[int, ModuleCall]]) -> Exported:
    """The module of a user's job. Raises ValueError where no axis of a batch is found."""
    call = calls[0][1]
    batches = [Batch(count, tuple(tensor for _, tensor in each.tensors())) for count, each in calls]
    if len({each.samples for each in batches}) < 2:
        raise ValueError("the test set has one sample, and only batches of two sizes tell the axis of the batch")
    if not any(map(growing_axes, _shapes(batches))):
        raise ValueError("no input of the model grows with the number of samples, so that its batch would be fixed")
    with torch.no_grad():
        outputs = output_tensors(module(*call.args, **call.kwargs))
    if not outputs:
        raise ValueError("the model gives no tensors, alone or in tuples, lists or dictionaries")
    names = [name for name, _ in call.tensors()]
    return Exported(OfTensors(module, call).eval(), batches, names, [name for name, _ in outputs])


def described(exported: Exported) -> Tuple[List[TensorLike], List[TensorLike]]:
    """What the module takes, and what it gives."""
    with torch.no_grad():
        made = [Batch(batch.samples, as_tuple(exported.module(*batch.tensors))) for batch in exported.batches]
    return _described(exported.names, exported.batches), _described(exported.outputs, made)


def axes_of_batches(exported: Exported) -> List[List[int]]:
    """Of each input, the axes whose length follows the batch."""
    return [growing_axes(shapes) for shapes in _shapes(exported.batches)]


def as_tuple(outputs: Any) -> Tuple[torch.Tensor, ...]:
    """What a module of ``Exported`` gives, also where it is one tensor."""
    return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)


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


def _call(module: nn.Module, loaded: LoadedJob, batch: Any) -> ModuleCall:
    seen: List[ModuleCall] = []

    def note(module: nn.Module, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        seen.append(ModuleCall(args, kwargs))

    hook = module.register_forward_pre_hook(note, with_kwargs=True)
    try:
        with torch.no_grad():
            given, state = as_tensors(batch), loaded.job.state
            loaded.job.forward(module, given, *([] if state is None else [state(given)]))
    finally:
        hook.remove()
    if not seen or not seen[0].tensors():
        raise ValueError("its forward does not call the model with tensors, but its parts or its methods")
    return seen[0]


def _shapes(batches: Sequence[Batch]) -> List[List[Tuple[int, ...]]]:
    """Of each tensor, its shape in each batch."""
    return [[tuple(tensor.shape) for tensor in of_batches] for of_batches in zip(*(each.tensors for each in batches))]


def _described(names: Sequence[str], batches: Sequence[Batch]) -> List[TensorLike]:
    types = [str(tensor.dtype).replace("torch.", "") for tensor in batches[0].tensors]
    return list(map(tensor_like, names, types, _shapes(batches)))
