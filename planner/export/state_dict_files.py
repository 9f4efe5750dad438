"""model.pth and model.safetensors are a module's ``state_dict``; the module is the user's own.

For a known model, a Python file of plain torch is written beside it. Safetensors have metadata
beside the arrays.
"""

import ast
import os
import re
from pathlib import Path

from backends.jobs.user_job import DATA_VARIABLE
from backends.models.user_source import locate
from planner.agents.exported import MARK
from planner.errors import ExportError
from planner.export.lines import Lines
from planner.export.torch_source import torch_source
from planner.export.trained_model import CLASSES, TrainedModel, metadata
from planner.jobs.reference import JobReference


def pth_files(model: TrainedModel, path: Path) -> dict[Path, bytes]:
    """The content of a file that torch loads, and of a known model's module. Raises ExportError."""
    from backends.pytorch import state_dicts

    return {path: state_dicts.pth(model.state), **_module(model, path)}


def pth_lines(model: TrainedModel, path: Path) -> Lines:
    """Python that loads the weights into the module, and runs it."""
    return _lines(model, path, "torch", f"torch.load({_named(model, path)!r}, weights_only=True)", "int({})")


def safetensors_files(model: TrainedModel, path: Path) -> dict[Path, bytes]:
    """The same for safetensors, in which a tensor with two names is twice.

    Raises ValueError for a state that is more than tensors.
    """
    from safetensors.torch import save

    from backends.pytorch import state_dicts

    content = save(state_dicts.apart(model.state), {"format": "pt", **metadata(model)})
    return {path: content, **_module(model, path)}


def safetensors_lines(model: TrainedModel, path: Path) -> Lines:
    """The same for safetensors, with the names of classes."""
    names = f"safetensors.safe_open({_named(model, path)!r}, 'pt').metadata()[{CLASSES!r}].split('\\n')"
    weights = f"safetensors.torch.load_file({_named(model, path)!r})"
    return _lines(model, path, "safetensors.torch, torch", weights, names + "[{}]")


def _lines(model: TrainedModel, path: Path, packages: str, weights: str, class_of: str) -> Lines:
    """class_of: Python that gives the class, for the place of the largest output."""
    if model.by_hand:
        return Lines((f"import {packages}", f"weights = {weights}", f"# with your model: {model.by_hand}"))
    loads = f"model.load_state_dict({weights})"
    largest = class_of.format("model(images)[0].argmax()")
    if model.job is not None:
        use = (f"print(model.eval()({model.arguments}))  # put yours for the zeros",) if model.arguments else ()
        return Lines((*building(model.job, packages), f"model = {model.place}", loads), use)
    if model.description is not None:
        shape = ", ".join(map(str, (1, *model.image_shape)))
        network = f"model = runpy.run_path({str(_source_path(path))!r})['Network']().eval()"
        images = f"images = torch.zeros({shape}, dtype=torch.{model.image_dtype})  # put yours here"
        return Lines((f"import runpy, {packages}", network, loads), (images, f"print({largest})"))
    height, width, channels = model.image_shape
    scaling = " * (2 / 255) - 1" if model.image_dtype == "uint8" else ""
    images = f"images = torch.zeros(1, {channels}, {height}, {width}){scaling}  # put yours for the zeros"
    return Lines((*importing(model, packages), "model = made[0].eval()", loads), (images, f"print({largest})"))


def building(job: JobReference, packages: str) -> tuple[str, str, str]:
    """Lines that call a job's function in its folder, as planner does; it returns ``made``.

    The name of its file need not be one that ``import`` takes.
    """
    folder = str(job.project.folder.resolve())
    data = os.environ.get(DATA_VARIABLE)
    environment = "" if data is None else f"; os.environ[{DATA_VARIABLE!r}] = {data!r}"
    return (
        f"import importlib, os, sys, {packages}",
        f"os.chdir({folder!r}); sys.path.insert(0, {folder!r}){environment}",
        f"made = importlib.import_module({job.module!r}).{job.function}()",
    )


def importing(model: TrainedModel, packages: str) -> tuple[str, str]:
    """Lines that call the function of a user's own model; it returns ``made``."""
    folder, module = _own_module(model)
    function = model.run.model.rpartition(":")[2]
    return (
        f"import importlib, sys, {packages}; sys.path.insert(0, {folder!r})",
        f"made = importlib.import_module({module!r}).{function}()",
    )


def _named(model: TrainedModel, path: Path) -> str:
    """Lines of a job leave the present folder."""
    return str(path if model.job is None else path.resolve())


def _module(model: TrainedModel, path: Path) -> dict[Path, bytes]:
    """The file of a known model's module. Raises ExportError where it is of other making."""
    if model.description is None:
        return {}
    source = _source_path(path)
    if source.exists() and MARK not in source.read_bytes():
        raise ExportError(f"--to {path}: the module would be written to {source}, which is another file; rename one")
    return {source: torch_source(model.description, model.image_dtype, path.name).encode()}


def _source_path(path: Path) -> Path:
    """Beside the weights, by a name that can be imported."""
    return path.with_name(re.sub(r"\W|^(?=\d)", "_", path.stem) + ".py")


def _own_module(model: TrainedModel) -> tuple[str, str]:
    """The folder to import from, and the user's module.

    A file that imports its neighbours as ``from . import block`` is a part of its folder's package.
    """
    path = Path(locate(model.run.model)[0])
    if any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(ast.parse(path.read_bytes()))):
        folder = path.resolve().parent
        return str(folder.parent), f"{folder.name}.{path.stem}"
    return str(path.parent), path.stem
