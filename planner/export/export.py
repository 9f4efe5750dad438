"""An export writes a run's trained model to a file, whole or not at all."""

import os
import tempfile
import traceback
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from backends.frameworks.batch_axes import TensorLike
from backends.jobs.failure import JobFailure
from backends.models.user_source import locate
from planner.agents.exported import marked
from planner.errors import MAKE_ROOM, ExportError, PlannerError
from planner.export import lines, trained_job, trained_model
from planner.export.formats import ExportFormat, export_format, instead
from planner.export.lines import Lines
from planner.export.trained_model import TrainedModel
from planner.export.trained_run import TrainedRun, trained_run
from planner.paths import RunFolder
from profilers.whole_file import FOR_ALL, whole_file


class Export(NamedTuple):
    """What was exported.

    files: all that were written, the exported one first. bytes: of that one.
    loads_with: packages that must be installed where it is loaded.
    lines: Python that loads and runs it.
    """

    path: str
    files: tuple[str, ...]
    format: str
    bytes: int
    model: str
    step: int
    inputs: tuple[TensorLike, ...]
    outputs: tuple[TensorLike, ...]
    classes: tuple[str, ...]
    loads_with: tuple[str, ...]
    lines: tuple[str, ...]
    notes: tuple[str, ...]


def export(run_folder: Path, to: Path, classes: str | None = None) -> Export:
    """Write the model of a run to a file whose ending names the format.

    classes: a file with a name a line, or names with commas between them; None for the data set's.
    Raises PlannerError: nothing is written then, and an older file stays as it was.
    """
    run = trained_run(RunFolder(run_folder))
    found = export_format(to, run)
    if to.is_dir() or not to.parent.is_dir():
        problem = "it is a directory" if to.is_dir() else f"there is no folder {to.parent}"
        raise ExportError(f"--to {to}: {problem}; name a file in a folder that exists")
    model = None
    try:
        model = _model(run, found, classes)
        files, used, notes, size = _written(model, found, to)
    except PlannerError:
        raise
    except Exception as error:
        # The weights of a job in PyTorch need neither its data nor its forward.
        advice = "" if model is None and (run.job is None or found.framework != "torch") else instead(found, run.model)
        raise ExportError(f"cannot export {run.model} to {to}: {_reason(error, run.model)}{advice}") from error
    # A user's own classifier takes and gives other things than what planner puts around it.
    is_inner = not found.is_graph and model.job is None and model.description is None
    return Export(
        path=str(to),
        files=files,
        format=found.title,
        bytes=size,
        model=run.model,
        step=run.step,
        inputs=() if is_inner else model.inputs,
        outputs=() if is_inner else model.outputs,
        classes=model.classes,
        loads_with=found.loads_with,
        lines=(*used.load, *used.use),
        notes=(*model.notes, *notes),
    )


def _model(run: TrainedRun, found: ExportFormat, classes: str | None) -> TrainedModel:
    """The run's model in the framework that makes the format. Raises whatever its code does."""
    if run.job is None:
        return trained_model.of_images(run, found.framework, classes)
    if found.framework == "torch":
        return trained_job.of_torch_job(run, run.job, classes, found.is_graph)
    return trained_job.of_keras_job(run, run.job, classes)


def _written(model: TrainedModel, found: ExportFormat, to: Path) -> tuple[tuple[str, ...], Lines, tuple[str, ...], int]:
    """The files, the lines that work, notes of them, and the bytes of the first file.

    The lines are tried before the files come to their place. Raises ExportError where there is no
    room, ValueError where a graph does not load.
    """
    contents = {path: marked(content) for path, content in found.files(model, to).items()}
    try:
        with tempfile.TemporaryDirectory(prefix=".planner-export-", dir=to.parent) as folder:
            for path, content in contents.items():
                with whole_file(f"{folder}/{path.name}", FOR_ALL) as file:
                    file.write(content)
            used, notes = _tried(model, found, to, Path(folder))
            for path in contents:
                Path(folder, path.name).replace(path)
    except OSError as error:
        raise ExportError(f"cannot write {to}: {error.strerror or error}; {MAKE_ROOM}") from error
    return tuple(map(str, contents)), used, notes, len(contents[to])


def _tried(model: TrainedModel, found: ExportFormat, to: Path, folder: Path) -> tuple[Lines, tuple[str, ...]]:
    """The lines that work with the files in a folder, and notes of them.

    Weights are of use without lines. Raises ValueError where a graph does not load.
    """
    used = found.lines(model, to)
    missing = [package for package in found.loads_with if find_spec(package) is None]
    if missing:
        return used, (f"{', '.join(missing)}: not installed here, so that neither the file nor the lines were tried",)
    tried, failure = lines.working(found.lines(model, folder / to.name))
    if failure and found.is_graph:
        raise ValueError(f"its file does not load: {failure}")
    failed = f"the lines that load it failed when run here: {failure}; the file has the weights all the same"
    return used._replace(use=used.use if tried.use else ()), (failed,) if failure else ()


def _reason(error: Exception, model: str) -> str:
    """The first line of an error and, where it comes from a user's own file, where."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, ValueError | JobFailure):
        return text
    folder = os.path.dirname(os.path.abspath(locate(model)[0])) if ":" in model else None
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if folder and os.path.dirname(os.path.abspath(frame.filename)) == folder
    ]
    return f"{type(error).__name__}: {text}" + (f", at {own[-1].filename}:{own[-1].lineno}" if own else "")
