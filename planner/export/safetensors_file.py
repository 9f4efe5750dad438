"""model.safetensors holds the arrays of a user's own PyTorch module, for ``load_state_dict``."""

import json
from pathlib import Path

from planner.errors import ExportError
from planner.export.trained_model import TrainedModel


def files(model: TrainedModel, path: Path) -> dict[Path, bytes]:
    """The file's content. Raises ExportError for a known model, whose module is planner's."""
    from safetensors.numpy import save

    from backends.pytorch import export

    if model.run.framework is None:
        raise ExportError(
            f"--to {path}: the module of {model.run.model} is planner's, so that arrays alone would not do elsewhere; "
            "export to .pt or .onnx"
        )
    metadata = {"model": model.run.model, "step": str(model.run.step), "classes": json.dumps(model.classes)}
    return {path: save(export.arrays(model.replica), metadata)}  # type: ignore[arg-type]


def lines(model: TrainedModel, path: Path) -> tuple[str, ...]:
    """Python that loads the arrays into the user's own module."""
    where, _, function = model.run.model.rpartition(":")
    module = where[: -len(".py")].rpartition("/")[2] if where.endswith(".py") else where
    made = f"{function}().model" if model.job is not None else f"{function}()[0]"
    return (
        "from safetensors.torch import load_file",
        f"from {module} import {function}  # your own file",
        f"model = {made}",
        f"print(model.load_state_dict(load_file({str(path)!r})))",
        "model.eval()",
    )
