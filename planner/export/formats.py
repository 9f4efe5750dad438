"""Formats of an exported model by file ending."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from planner.errors import ExportError
from planner.export import keras_files, onnx_torchscript, state_dict_files
from planner.export.lines import Lines
from planner.export.trained_model import TrainedModel
from planner.export.trained_run import TrainedRun

#: Frameworks as they are called.
CALLED = {"torch": "PyTorch", "tensorflow": "TensorFlow"}
#: By framework, the format that every model of a user's own has.
WEIGHTS = {"torch": ".pth", "tensorflow": ".weights.h5"}


class ExportFormat(NamedTuple):
    """How a file of one ending is made.

    framework: makes it. packages: what else must be installed for that, as pip calls it.
    loads_with: what must be installed to load it.
    files: their content by path, the exported file first.
    lines: Python that loads and runs the file.
    is_graph: it holds what the model computes, too.
    """

    title: str
    framework: str
    packages: tuple[str, ...]
    loads_with: tuple[str, ...]
    files: Callable[[TrainedModel, Path], dict[Path, bytes]]
    lines: Callable[[TrainedModel, Path], Lines]
    is_graph: bool = True


def _alone(content: Callable[[TrainedModel], bytes]) -> Callable[[TrainedModel, Path], dict[Path, bytes]]:
    """The files of a format that writes no other file beside the exported one."""
    return lambda model, path: {path: content(model)}


FORMATS = {
    ".pth": ExportFormat(
        "state_dict",
        "torch",
        (),
        ("torch",),
        state_dict_files.pth_files,
        state_dict_files.pth_lines,
        is_graph=False,
    ),
    ".safetensors": ExportFormat(
        "safetensors",
        "torch",
        ("safetensors",),
        ("torch", "safetensors"),
        state_dict_files.safetensors_files,
        state_dict_files.safetensors_lines,
        is_graph=False,
    ),
    ".pt": ExportFormat(
        "TorchScript",
        "torch",
        (),
        ("torch",),
        _alone(onnx_torchscript.torchscript),
        onnx_torchscript.torchscript_lines,
    ),
    ".onnx": ExportFormat(
        "ONNX",
        "torch",
        ("onnx", "onnxscript"),
        (onnx_torchscript.RUNS_ONNX,),
        _alone(onnx_torchscript.onnx),
        onnx_torchscript.onnx_lines,
    ),
    ".keras": ExportFormat(
        "Keras",
        "tensorflow",
        (),
        ("tensorflow",),
        _alone(keras_files.keras),
        keras_files.keras_lines,
    ),
    ".weights.h5": ExportFormat(
        "Keras's weights",
        "tensorflow",
        (),
        ("tensorflow",),
        _alone(keras_files.keras_weights),
        keras_files.keras_weights_lines,
        is_graph=False,
    ),
}


def export_format(path: Path, run: TrainedRun) -> ExportFormat:
    """The format of a file. Raises ExportError where it is unknown or cannot be made here."""
    ending = next((each for each in FORMATS if path.name.endswith(each)), None)
    if ending is None:
        known = ", ".join(f"model{each}" for each in FORMATS)
        raise ExportError(f"--to {path}: its ending is of no known format; known: {known}")
    found = FORMATS[ending]
    if run.framework not in (None, found.framework):
        own = [each for each, made in FORMATS.items() if made.framework == run.framework]
        raise ExportError(
            f"--to {path}: {CALLED[found.framework]} makes {ending} files, and {run.model} is a "
            f"{CALLED[str(run.framework)]} model of your own; it can be exported to {', '.join(own)}"
        )
    for package in (found.framework, *found.packages):
        if find_spec(package) is None:
            raise ExportError(
                f"--to {path}: {CALLED.get(package, package)}, which makes it, is not installed on this machine; "
                f"remedy: pip install {package}"
            )
    return found


def suggested(model: str, framework: str) -> str:
    """The name of a file to export a model to, known by its name or of a user's own."""
    return f"model{WEIGHTS[framework]}" if ":" in model else "model.pt"


def instead(found: ExportFormat, model: str) -> str:
    """Advice where a file of another format cannot be made; empty where none would help."""
    weights = WEIGHTS[found.framework]
    is_possible = found is not FORMATS[weights] and (found.framework == "torch" or ":" in model)
    return f"; export its weights to model{weights}" if is_possible else ""
