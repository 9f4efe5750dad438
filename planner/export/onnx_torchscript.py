"""TorchScript and ONNX: one file that holds a PyTorch model with its weights and its classes.

model.pt loads with torch alone, from 1.10 to today's, in Python and in C++. A file of
``torch.export`` would be read by the newest versions of torch only, which boards lack. model.onnx
loads with onnxruntime and with many other programs.

The lines are Python that loads the file and names the class of one image, or prints what a job
gives.
"""

import re
from importlib.util import find_spec
from pathlib import Path

from planner.errors import ExportError
from planner.export.lines import Lines
from planner.export.trained_model import CLASSES, TrainedModel, metadata

#: The entry of files of TorchScript and Keras that holds the class names, a name a line.
CLASSES_FILE = "classes.txt"
#: A part of a name of a module whose classes a file of TorchScript can hold.
HELD = re.compile(r"[A-Za-z_][\w@+-]*", re.ASCII)
#: Runs ONNX files.
RUNS_ONNX = "onnxruntime"


def torchscript(model: TrainedModel) -> bytes:
    """The file's content. Raises ValueError where the model cannot be traced.

    Raises ExportError where names of its modules are not TorchScript's.
    """
    from backends.pytorch import onnx_torchscript

    assert model.graph is not None
    _require_names(model)
    return onnx_torchscript.torchscript(model.graph, {CLASSES_FILE: "\n".join(model.classes)})


def _require_names(model: TrainedModel) -> None:
    """Raises ExportError for a class that could be written and not be read again."""
    assert model.graph is not None
    for part in map(type, model.graph.module.modules()):
        if not all(map(HELD.fullmatch, part.__module__.split("."))):
            raise ExportError(
                f"{model.run.model}: TorchScript cannot hold {part.__name__} of module {part.__module__!r}, for its "
                "name may have ASCII letters, digits, _ and - only, and no digit first; export to model.onnx or "
                "model.pth, or rename the file and train again"
            )


def torchscript_lines(model: TrainedModel, path: Path) -> Lines:
    load = f"torch.jit.load({str(path)!r}, map_location='cpu', _extra_files=extra)"
    tensors = ", ".join(f"torch.zeros({each.example}, dtype=torch.{each.dtype})" for each in model.inputs)
    loaded = ("import torch", f"extra = {{{CLASSES_FILE!r}: ''}}", f"model = {load}")
    if model.job is not None:
        return Lines(loaded, (f"inputs = [{tensors}]  # put yours here", "print(model(*inputs))"))
    largest = f"print(extra[{CLASSES_FILE!r}].decode().split('\\n')[model(images)[0].argmax()])"
    return Lines(loaded, (f"images = {tensors}  # put yours here", largest))


def onnx(model: TrainedModel) -> bytes:
    """The file's content. Raises ValueError where torch cannot write it as it computes."""
    from backends.pytorch import onnx_torchscript

    assert model.graph is not None
    content = onnx_torchscript.onnx(model.graph, metadata(model))
    if find_spec(RUNS_ONNX) is not None:
        from onnxruntime import InferenceSession, SessionOptions

        quiet = SessionOptions()
        quiet.log_severity_level = 4  # what it raises is told here
        session = InferenceSession(content, quiet, ["CPUExecutionProvider"])
        onnx_torchscript.require_same(lambda inputs: session.run(None, inputs), model.graph)
    return content


def onnx_lines(model: TrainedModel, path: Path) -> Lines:
    feeds = ", ".join(f"{each.name!r}: numpy.zeros({each.example}, {each.dtype!r})" for each in model.inputs)
    names = f"session.get_modelmeta().custom_metadata_map[{CLASSES!r}].split('\\n')"
    return Lines(
        (f"import numpy, {RUNS_ONNX}", f"session = {RUNS_ONNX}.InferenceSession({str(path)!r})"),
        (
            f"inputs = {{{feeds}}}  # put yours here",
            "outputs = session.run(None, inputs)",
            "print(outputs)" if model.job is not None else f"print({names}[outputs[0][0].argmax()])",
        ),
    )
