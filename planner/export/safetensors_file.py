"""model.safetensors is named arrays and metadata: to load it runs no code, and needs the module.

That is the user's own. For a known model, a Python file of plain torch is written beside it.
"""

import ast
import re
from pathlib import Path

from backends.models.user_source import locate
from planner.errors import ExportError
from planner.export.torch_source import MARK, torch_source
from planner.export.trained_model import CLASSES, TrainedModel, metadata, torch_replica


def files(model: TrainedModel, path: Path) -> dict[Path, bytes]:
    """The content of the file and, for a known model, of its module.

    Raises ExportError where another file has the name of the module.
    """
    from safetensors.numpy import save

    from backends.pytorch import export

    made: dict[Path, bytes] = {}
    if model.description is not None:
        source = _source_path(path)
        if source.exists() and not source.read_bytes().startswith(MARK.encode()):
            raise ExportError(
                f"--to {path}: the module would be written to {source}, which is another file; rename one"
            )
        made[source] = torch_source(model.description, model.image_dtype, path.name).encode()
    arrays = export.arrays(torch_replica(model.replica))
    return {path: save(arrays, {"format": "pt", **metadata(model)}), **made}


def lines(model: TrainedModel, path: Path) -> tuple[str, ...]:
    """Python that loads the arrays into the module and runs it."""
    weights = f"safetensors.safe_open({str(path)!r}, 'pt')"
    loads = "model.load_state_dict({name: weights.get_tensor(name) for name in weights.keys()})"
    names = f"weights.metadata()[{CLASSES!r}].split('\\n')"
    if model.description is not None:
        shape = ", ".join(map(str, (1, *model.replica.input_shape)))
        return (
            "import runpy, safetensors, torch",
            f"model, weights = runpy.run_path({str(_source_path(path))!r})['Network']().eval(), {weights}",
            loads,
            f"images = torch.zeros({shape}, dtype=torch.{model.image_dtype})  # put yours here",
            f"print({names}[model(images)[0].argmax()])",
        )
    folder, module = _own_module(model)
    function = model.run.model.rpartition(":")[2]
    part = "model" if model.job is not None else "[0]"
    made = f"importlib.import_module({module!r}).{function}(){'.' if part == 'model' else ''}{part}.eval()"
    return (
        f"import importlib, safetensors, sys, torch; sys.path.insert(0, {folder!r})",
        f"model, weights = {made}, {weights}",
        loads,
        *_use(model, names),
    )


def _use(model: TrainedModel, names: str) -> tuple[str, str]:
    """Lines that run a user's own module, which holds no preprocessing."""
    if model.job is None:
        height, width, channels = model.replica.input_shape
        scaling = " * (2 / 255) - 1" if model.image_dtype == "uint8" else ""
        return (
            f"images = torch.zeros(1, {channels}, {height}, {width}){scaling}  # put yours for the zeros",
            f"print({names}[model(images)[0].argmax()])",
        )
    tensors = ", ".join(f"torch.zeros({(1, *each.shape[1:])}, dtype=torch.{each.dtype})" for each in model.inputs)
    return f"inputs = [{tensors}]  # put yours here", "print(model(*inputs))"


def _source_path(path: Path) -> Path:
    """Beside the weights, by a name that can be imported."""
    return path.with_name(re.sub(r"\W|^(?=\d)", "_", path.stem) + ".py")


def _own_module(model: TrainedModel) -> tuple[str, str]:
    """The folder to import from, and the user's module.

    A file that imports its neighbours as ``from . import block`` is a part of its folder's package.
    """
    if model.job is not None:
        return str(model.job.reference.project.folder), model.job.reference.module
    path = Path(locate(model.run.model)[0])
    if any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(ast.parse(path.read_bytes()))):
        folder = path.resolve().parent
        return str(folder.parent), f"{folder.name}.{path.stem}"
    return str(path.parent), path.stem
