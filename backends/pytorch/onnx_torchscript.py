"""A trained module becomes a file of ONNX or TorchScript, which is compared with the module."""

import contextlib
import io
import logging
import warnings
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np
import torch

from backends.pytorch.export import Batch, Exported, as_tuple, axes_of_batches
from backends.pytorch.module_calls import OfTensors

#: Outputs of a file may differ from the module's own by so much.
TOLERANCE = 1e-4
#: The oldest torch whose ONNX exporter is built on ``torch.export`` and gives the model in memory.
ONNX_SINCE = (2, 6)
#: What torch raises where Python's control flow asks for a value of a tensor.
OF_VALUES = "GuardOnDataDependentSymNode"


def torchscript(exported: Exported, extra_files: Dict[str, str]) -> bytes:
    """The content of a file that ``torch.jit.load`` reads. ``extra_files``: texts in it, by name.

    Its parameters, and from then on the module's, need no gradients. Raises ValueError where the
    module, once traced, computes something else: control flow of Python is not in a trace.
    """
    stream = io.BytesIO()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch.export is newer, and that shapes become constants
        traced = torch.jit.trace(exported.module.requires_grad_(False), exported.batches[0].tensors, check_trace=False)
        with torch.jit.optimized_execution(False):  # which would compile it anew for batches of other sizes
            _compare(traced, exported)
        torch.jit.save(traced, stream, _extra_files=extra_files)
    return stream.getvalue()


def onnx(exported: Exported, metadata: Dict[str, str]) -> bytes:
    """The content of an ONNX file, for any batch size. ``metadata``: its ``metadata_props``.

    Raises ValueError where this torch is too old, and what stops it from writing the file.
    """
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < ONNX_SINCE:
        raise ValueError(
            "torch %s writes no such ONNX file; remedy: export where torch is %d.%d or newer"
            % ((torch.__version__,) + ONNX_SINCE)
        )
    shapes = tuple(dict.fromkeys(axes, torch.export.Dim.AUTO) for axes in axes_of_batches(exported))
    with torch.no_grad(), _quiet():
        try:
            program = torch.onnx.export(
                exported.module,
                exported.batches[0].tensors,
                input_names=exported.names,
                output_names=exported.outputs,
                dynamic_shapes=(shapes,) if isinstance(exported.module, OfTensors) else shapes,
                dynamo=True,
                verbose=False,
            )
        except torch.onnx.OnnxExporterError as error:
            raise _cause(error) from error
    _name_axes(program, exported)
    program.model.metadata_props.update(metadata)
    content: bytes = program.model_proto.SerializeToString()
    return content


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Torch tells of its own optimisations, and prints graphs that it cannot make."""
    for name in ("torch", "onnxscript", "onnx_ir"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def _cause(error: BaseException) -> BaseException:
    """What an exporter's error comes from, with its place in the user's code."""
    while error.__cause__ is not None:
        error = error.__cause__
    if type(error).__name__ != OF_VALUES:
        return error
    said = "its control flow depends on values, which a graph cannot hold"
    return RuntimeError(said).with_traceback(error.__traceback__)


def require_same(run: Callable[[Dict[str, np.ndarray]], Any], exported: Exported) -> None:
    """Run an exported file on each batch of ``exported``.

    run: of inputs by name; gives arrays.
    Raises ValueError where the file does not compute what the module does.
    """

    def of_tensors(*tensors: torch.Tensor) -> Any:
        feeds = {name: tensor.numpy() for name, tensor in zip(exported.names, tensors)}
        try:
            return tuple(map(torch.from_numpy, run(feeds)))
        except Exception as error:  # noqa: BLE001 - those of onnxruntime have no class in common
            raise RuntimeError(str(error)) from error

    with torch.no_grad():
        _compare(of_tensors, exported)


def _name_axes(program: Any, exported: Exported) -> None:
    """Call the axis of a batch so, instead of by a symbol of torch's own."""
    samples = exported.batches[0].samples
    for place, axes in enumerate(axes_of_batches(exported)):
        for axis in axes:
            if exported.batches[0].tensors[place].shape[axis] == samples and hasattr(program, "rename_axes"):
                program.rename_axes({program.model.graph.inputs[place].shape[axis]: "batch"})


def _compare(run: Callable[..., Any], exported: Exported) -> None:
    """Raises ValueError where ``run`` gives other outputs than the module for one of its batches.

    Outputs that differ from call to call cannot be compared.
    """
    for samples, tensors in exported.batches + _opposites(exported):
        expected, again = (as_tuple(exported.module(*tensors)) for _ in range(2))
        if not _same(expected, again):
            raise ValueError("its outputs for the same inputs are others each time")
        first = exported.batches[0].samples
        which = "another" if samples == first else "one"
        said = "made of a batch of %d samples, it computes something else for %s of %d" % (first, which, samples)
        try:
            if not _same(as_tuple(run(*tensors)), expected):
                raise ValueError(said + "; keep values and batch sizes out of Python's control flow")
        except RuntimeError as error:  # a shape of the first batch has become a constant
            raise ValueError("%s: %s" % (said, str(error).strip().splitlines()[-1])) from error


def _opposites(exported: Exported) -> List[Batch]:
    """The batches with the signs of their numbers turned, so that values decide otherwise.

    Without those of which the module gives nothing finite.
    """
    turned = (tuple(-each if each.is_floating_point() else each for each in of) for _, of in exported.batches)
    found = [Batch(each.samples, tensors) for each, tensors in zip(exported.batches, turned)]
    return [each for each in found if _is_finite(exported, each.tensors)]


def _is_finite(exported: Exported, tensors: Tuple[torch.Tensor, ...]) -> bool:
    try:
        return all(bool(torch.isfinite(each).all()) for each in as_tuple(exported.module(*tensors)))
    except Exception:  # noqa: BLE001 - of the user's own code, which may take no such values
        return False


def _same(found: Tuple[torch.Tensor, ...], expected: Tuple[torch.Tensor, ...]) -> bool:
    return len(found) == len(expected) and all(
        one.shape == other.shape and torch.allclose(one.float(), other.float(), TOLERANCE, TOLERANCE, equal_nan=True)
        for one, other in zip(found, expected)
    )
