"""model.pt is TorchScript: it loads with torch alone, from 1.10 to today's, in Python and in C++.

A file of ``torch.export`` would be read by the newest versions of torch only, which boards lack.
"""

from pathlib import Path

from planner.export.trained_model import TrainedModel

#: The entry of the file that holds the class names, a name a line.
CLASSES = "classes.txt"


def files(model: TrainedModel, path: Path) -> dict[Path, bytes]:
    """The file's content. Raises ValueError where the model cannot be traced."""
    from backends.pytorch import export, job_export

    names, replica = {CLASSES: "\n".join(model.classes)}, model.replica
    if model.job is not None:
        return {path: job_export.torchscript(replica, model.job.loaded, names)}  # type: ignore[arg-type]
    return {path: export.torchscript(replica, model.image_dtype, names)}  # type: ignore[arg-type]


def lines(model: TrainedModel, path: Path) -> tuple[str, ...]:
    """Python that loads the file and names the class of one image, or prints what a job gives."""
    load = f"torch.jit.load({str(path)!r}, map_location='cpu', _extra_files=extra)"
    tensors = ", ".join(
        f"torch.zeros({', '.join(map(str, (1, *each.shape[1:])))}, dtype=torch.{each.dtype})" for each in model.inputs
    )
    if model.job is not None:
        own = f"inputs = [{tensors}]  # put yours here"
        return "import torch", f"extra = {{{CLASSES!r}: ''}}", f"model = {load}", own, "print(model(*inputs))"
    return (
        "import torch",
        f"extra = {{{CLASSES!r}: ''}}",
        f"model = {load}",
        f"images = {tensors}  # put yours here",
        f"print(extra[{CLASSES!r}].decode().split('\\n')[model(images)[0].argmax()])",
    )
