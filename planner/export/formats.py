"""Formats of an exported model by file ending: TorchScript, ONNX, safetensors and Keras."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from planner.errors import ExportError
from planner.export import onnx_torchscript_keras as graph_files
from planner.export import safetensors_file
from planner.export.trained_model import TrainedModel, TrainedRun

#: Frameworks as they are called.
CALLED = {"torch": "PyTorch", "tensorflow": "TensorFlow"}


class ExportFormat(NamedTuple):
    """How a file of one ending is made.

    framework: makes it. packages: what else must be installed for that, as pip calls it.
    loads_with: what must be installed to load it.
    files: their content by path, the exported file first.
    lines: Python that loads and runs the file.
    """

    title: str
    framework: str
    packages: tuple[str, ...]
    loads_with: tuple[str, ...]
    files: Callable[[TrainedModel, Path], dict[Path, bytes]]
    lines: Callable[[TrainedModel, Path], tuple[str, ...]]


def _alone(content: Callable[[TrainedModel], bytes]) -> Callable[[TrainedModel, Path], dict[Path, bytes]]:
    """The files of a format that writes no other file beside the exported one."""
    return lambda model, path: {path: content(model)}


FORMATS = {
    ".pt": ExportFormat(
        "TorchScript",
        "torch",
        (),
        ("torch",),
        _alone(graph_files.torchscript),
        graph_files.torchscript_lines,
    ),
    ".onnx": ExportFormat(
        "ONNX",
        "torch",
        ("onnx", "onnxscript"),
        ("onnxruntime",),
        _alone(graph_files.onnx),
        graph_files.onnx_lines,
    ),
    ".safetensors": ExportFormat(
        "safetensors",
        "torch",
        ("safetensors",),
        ("torch", "safetensors"),
        safetensors_file.files,
        safetensors_file.lines,
    ),  # fmt: skip
    ".keras": ExportFormat(
        "Keras",
        "tensorflow",
        (),
        ("tensorflow",),
        _alone(graph_files.keras),
        graph_files.keras_lines,
    ),
}


def export_format(path: Path, run: TrainedRun) -> ExportFormat:
    """The format of a file. Raises ExportError where it is unknown or cannot be made here."""
    if path.suffix not in FORMATS:
        known = ", ".join(f"model{ending}" for ending in FORMATS)
        raise ExportError(f"--to {path}: its ending is of no known format; known: {known}")
    found = FORMATS[path.suffix]
    if run.framework not in (None, found.framework):
        own = [ending for ending, each in FORMATS.items() if each.framework == run.framework]
        raise ExportError(
            f"--to {path}: {CALLED[found.framework]} makes {path.suffix} files, and {run.model} is a "
            f"{CALLED[str(run.framework)]} model of your own; it can be exported to {', '.join(own)}"
        )
    for package in (found.framework, *found.packages):
        if find_spec(package) is None:
            raise ExportError(
                f"--to {path}: {CALLED.get(package, package)}, which makes it, is not installed on this machine; "
                f"remedy: pip install {package}"
            )
    return found
