"""model.onnx loads with onnxruntime and with many other programs."""

import json
from pathlib import Path

from planner.export.trained_model import TrainedModel

#: The key of the file's metadata that holds the class names, as JSON.
CLASSES = "classes"


def files(model: TrainedModel, path: Path) -> dict[Path, bytes]:
    """The file's content. Raises ValueError where torch cannot write it."""
    from backends.pytorch import export, job_export

    metadata, replica = {CLASSES: json.dumps(model.classes)}, model.replica
    if model.job is not None:
        return {path: job_export.onnx(replica, model.job.loaded, metadata)}  # type: ignore[arg-type]
    return {path: export.onnx(replica, metadata)}  # type: ignore[arg-type]


def lines(model: TrainedModel, path: Path) -> tuple[str, ...]:
    """Python that loads and runs the file."""
    feeds = ", ".join(f"{each.name!r}: numpy.zeros({(1, *each.shape[1:])}, '{each.dtype}')" for each in model.inputs)
    return (
        "import numpy, onnxruntime",
        f"session = onnxruntime.InferenceSession({str(path)!r})",
        f"names = session.get_modelmeta().custom_metadata_map[{CLASSES!r}]",
        f"inputs = {{{feeds}}}  # put yours here",
        "print(session.run(None, inputs)[0], names)",
    )
