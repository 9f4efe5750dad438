"""A trained module of PyTorch is written as an ONNX file, or as one of TorchScript."""

import io
import logging
import warnings
from typing import Any, Dict, Tuple

import torch

from backends.pytorch.export import Exported

#: Outputs of a traced module may differ from the module's own by so much.
TOLERANCE = 1e-4
#: Batches with which a traced module is compared with the module itself.
COMPARED_BATCHES = (1, 3)
#: The oldest torch whose ONNX exporter is built on ``torch.export`` and gives the model in memory.
ONNX_SINCE = (2, 6)


def torchscript(exported: Exported, extra_files: Dict[str, str]) -> bytes:
    """The content of a file that ``torch.jit.load`` reads. ``extra_files``: texts in it, by name.

    Raises ValueError where the module, once traced, computes something else: control flow of Python
    is not in a trace.
    """
    stream = io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.export is newer, and that shapes become constants
        traced = torch.jit.trace(exported.module, exported.inputs(2), check_trace=False)
        for count in COMPARED_BATCHES:
            if not _same(traced, exported.module, exported.inputs(count)):
                raise ValueError(
                    "traced with one batch, it computes something else for another one of %d samples; keep values and "
                    "batch sizes out of Python's control flow, or export to .safetensors" % count
                )
        torch.jit.save(traced, stream, _extra_files=extra_files)
    return stream.getvalue()


def onnx(exported: Exported, metadata: Dict[str, str]) -> bytes:
    """The content of an ONNX file, for any batch size. ``metadata``: its ``metadata_props``.

    Raises ValueError where this torch is too old.
    """
    inputs = exported.inputs(2)
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < ONNX_SINCE:
        raise ValueError(
            "torch %s writes no such ONNX file; remedy: export where torch is %d.%d or newer"
            % ((torch.__version__,) + ONNX_SINCE)
        )
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it would tell that torchvision is absent
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            exported.module,
            inputs,
            input_names=exported.names,
            output_names=[exported.output],
            dynamic_shapes=tuple({0: torch.export.Dim("batch")} for _ in inputs),
            dynamo=True,
            verbose=False,
        )
    program.model.metadata_props.update(metadata)
    content: bytes = program.model_proto.SerializeToString()
    return content


def _same(traced: Any, module: Any, inputs: Tuple[Any, ...]) -> bool:
    try:
        found, expected = traced(*inputs), module(*inputs)
    except RuntimeError:  # a shape of the traced batch has become a constant
        return False
    pairs = zip(found, expected) if isinstance(expected, (tuple, list)) else [(found, expected)]
    return all(torch.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE) for one, other in pairs)
