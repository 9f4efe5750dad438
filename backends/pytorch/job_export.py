"""A trained module of a user's job leaves the program, traced with the inputs of a sample batch."""

import io
import warnings
from typing import Any, Dict, List, NamedTuple, Tuple

import torch

from backends.jobs.job import LoadedJob
from backends.pytorch.export import TOLERANCE, detached, saved_as_onnx
from backends.pytorch.jobs import as_tensors
from backends.pytorch.replica import TorchReplica

#: Batches with which a traced module is compared with the module itself.
COMPARED = (1, 3)


class TensorLike(NamedTuple):
    """A tensor's type, and its shape for a batch of one."""

    dtype: str
    shape: Tuple[int, ...]


def signature(replica: TorchReplica, loaded: LoadedJob) -> Tuple[List[TensorLike], TensorLike]:
    """The inputs of the module, and its output. Raises ValueError as ``torchscript`` does."""
    inputs = _inputs(replica, loaded, 1)
    with torch.no_grad():
        output = detached(replica)(*inputs)
    first = output[0] if isinstance(output, (tuple, list)) else output
    return [_like(tensor) for tensor in inputs], _like(first)


def torchscript(replica: TorchReplica, loaded: LoadedJob, extra_files: Dict[str, str]) -> bytes:
    """The content of a file that ``torch.jit.load`` reads. ``extra_files``: texts in it, by name.

    Raises ValueError where the module takes other things than tensors, or where, once traced, it
    computes something else.
    """
    module, stream = detached(replica), io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.export is newer, and that shapes become constants
        traced = torch.jit.trace(module, _inputs(replica, loaded, 2), check_trace=False)
        for count in COMPARED:
            inputs = _inputs(replica, loaded, count)
            if not _same(traced, module, inputs):
                raise ValueError(
                    "traced with one batch, it computes something else for another one of %d samples; keep values and "
                    "batch sizes out of Python's control flow, or export to .safetensors" % count
                )
        torch.jit.save(traced, stream, _extra_files=extra_files)
    return stream.getvalue()


def onnx(replica: TorchReplica, loaded: LoadedJob, metadata: Dict[str, str]) -> bytes:
    """The content of an ONNX file, for any batch size, as ``export.onnx``."""
    inputs = _inputs(replica, loaded, 2)
    names = ["input_%d" % place for place in range(len(inputs))]
    return saved_as_onnx(detached(replica), inputs, names, "output", metadata)


def _inputs(replica: TorchReplica, loaded: LoadedJob, count: int) -> Tuple[Any, ...]:
    """What the job's forward gives the module for the first samples of the test set.

    Raises ValueError for anything but tensors.
    """
    batch = next(batch for _, batch in loaded.test.batches(count))
    module = detached(replica)
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


def _same(traced: Any, module: Any, inputs: Tuple[Any, ...]) -> bool:
    try:
        found, expected = traced(*inputs), module(*inputs)
    except RuntimeError:  # a shape of the traced batch has become a constant
        return False
    pairs = zip(found, expected) if isinstance(expected, (tuple, list)) else [(found, expected)]
    return all(torch.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE) for one, other in pairs)


def _like(tensor: torch.Tensor) -> TensorLike:
    return TensorLike(str(tensor.dtype).replace("torch.", ""), tuple(tensor.shape))
