"""model.onnx loads with onnxruntime and with many other programs."""

from pathlib import Path

from planner.export.metadata import CLASSES, metadata
from planner.export.trained_model import TrainedModel


def files(model: TrainedModel, path: Path) -> dict[Path, bytes]:
    """The file's content. Raises ValueError where torch cannot write it."""
    from backends.pytorch import export, job_export

    told, replica = metadata(model), model.replica
    if model.job is not None:
        return {path: job_export.onnx(replica, model.job.loaded, told)}  # type: ignore[arg-type]
    return {path: export.onnx(replica, model.image_dtype, told)}  # type: ignore[arg-type]


def lines(model: TrainedModel, path: Path) -> tuple[str, ...]:
    """Python that loads the file and names the class of one image, or prints what a job gives."""
    feeds = ", ".join(f"{each.name!r}: numpy.zeros({(1, *each.shape[1:])}, '{each.dtype}')" for each in model.inputs)
    names = f"session.get_modelmeta().custom_metadata_map[{CLASSES!r}].split('\\n')"
    return (
        "import numpy, onnxruntime",
        f"session = onnxruntime.InferenceSession({str(path)!r})",
        f"inputs = {{{feeds}}}  # put yours here",
        f"({model.output.name},) = session.run(None, inputs)",
        "print(output)" if model.job is not None else f"print({names}[probabilities[0].argmax()])",
    )
