"""A trained module leaves the program: as TorchScript, as ONNX, or as named arrays."""

import io
import logging
import warnings
from typing import Any, Dict, List, Tuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from backends.pytorch.replica import TorchReplica

#: Outputs of a traced module may differ from the module's own by so much.
TOLERANCE = 1e-4
#: Batches with which a traced module is compared with the module itself.
COMPARED_BATCHES = (1, 3)
#: The oldest torch whose ONNX exporter is built on ``torch.export`` and gives the model in memory.
ONNX_SINCE = (2, 6)


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


def detached(replica: TorchReplica) -> nn.Module:
    """The replica's module on the CPU, in evaluation, with arrays of its own; takes it over."""
    module = replica.module.cpu().eval()
    for tensor in (*module.parameters(), *module.buffers()):
        tensor.data = tensor.data.clone()  # in the replica it is part of one flat tensor, which would be saved whole
        tensor.requires_grad_(False)
    return module


def classifier(replica: TorchReplica, dtype: str) -> ImageClassifier:
    """The replica's module, which it takes over, with scaling before it and a softmax behind it."""
    whole = ImageClassifier(detached(replica), dtype)
    whole.eval()
    return whole


def torchscript(replica: TorchReplica, dtype: str, extra_files: Dict[str, str]) -> bytes:
    """The content of a file that ``torch.jit.load`` reads.

    dtype: of the data set's images. extra_files: texts in it, by name.
    Raises ValueError where the module, once traced, computes something else.
    """
    module = classifier(replica, dtype)
    stream = io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.export is newer, and that shapes become constants
        traced = torch.jit.trace(module, _images(replica, dtype, 2), check_trace=False)
        _compare(traced, module, replica, dtype)
        torch.jit.save(traced, stream, _extra_files=extra_files)
    return stream.getvalue()


def onnx(replica: TorchReplica, dtype: str, metadata: Dict[str, str]) -> bytes:
    """The content of an ONNX file, for any batch size.

    dtype: of the data set's images. metadata: its ``metadata_props``.
    Raises ValueError where this torch is too old.
    """
    inputs = (_images(replica, dtype, 2),)
    return saved_as_onnx(classifier(replica, dtype), inputs, ["images"], "probabilities", metadata)


def saved_as_onnx(
    module: nn.Module, inputs: Tuple[Any, ...], names: List[str], output: str, metadata: Dict[str, str]
) -> bytes:
    """As ``onnx``, of any module. ``inputs``: a batch of two samples; ``names``: of these."""
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < ONNX_SINCE:
        raise ValueError(
            "torch %s writes no such ONNX file; remedy: pip install 'torch>=%d.%d'"
            % ((torch.__version__,) + ONNX_SINCE)
        )
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it would tell that torchvision is absent
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module,
            inputs,
            input_names=names,
            output_names=[output],
            dynamic_shapes=tuple({0: torch.export.Dim("batch")} for _ in inputs),
            dynamo=True,
            verbose=False,
        )
    program.model.metadata_props.update(metadata)
    content: bytes = program.model_proto.SerializeToString()
    return content


def arrays(replica: TorchReplica) -> Dict[str, np.ndarray]:
    """What ``load_state_dict`` of the replica's module takes, by name."""
    module = detached(replica)
    return {name: tensor.contiguous().numpy() for name, tensor in module.state_dict().items()}


def _images(replica: TorchReplica, dtype: str, count: int) -> torch.Tensor:
    shape, generator = (count,) + tuple(replica.input_shape), torch.Generator().manual_seed(count)
    if dtype == "uint8":
        return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    return torch.randn(shape, generator=generator)


def _compare(traced: Any, module: ImageClassifier, replica: TorchReplica, dtype: str) -> None:
    """Raises ValueError where they differ: control flow of Python is not in a trace."""
    for count in COMPARED_BATCHES:
        images = _images(replica, dtype, count)
        try:
            same = torch.allclose(traced(images), module(images), rtol=0, atol=TOLERANCE)
        except RuntimeError:  # a shape of the traced batch has become a constant
            same = False
        if not same:
            raise ValueError(
                "traced with one batch, it computes something else for another one of %d images; keep values and batch "
                "sizes out of Python's control flow, or export to .safetensors" % count
            )
