"""model.pt is TorchScript: it loads with torch alone, from 1.10 to today's, in Python and in C++.

A file of ``torch.export`` would be read by the newest versions of torch only, which boards lack.
"""

from pathlib import Path

from planner.export.trained_model import TrainedModel

#: The entry of the file that holds the class names, a name a line.
CLASSES = "classes.txt"


def files(model: TrainedModel, path: Path) -> dict[Path, bytes]:
    """The file's content. Raises ValueError where the model cannot be traced."""
    from backends.pytorch import export

    replica = model.replica
    return {path: export.torchscript(replica, {CLASSES: "\n".join(model.classes)})}  # type: ignore[arg-type]


def lines(model: TrainedModel, path: Path) -> tuple[str, ...]:
    """Python that loads the file and names the class of one image."""
    shape = ", ".join(map(str, (1, *model.replica.input_shape)))
    return (
        "import torch",
        f"extra = {{{CLASSES!r}: ''}}",
        f"model = torch.jit.load({str(path)!r}, map_location='cpu', _extra_files=extra)",
        f"images = torch.zeros({shape}, dtype=torch.uint8)  # put yours here",
        f"print(extra[{CLASSES!r}].decode().split('\\n')[model(images)[0].argmax()])",
    )
