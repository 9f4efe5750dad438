"""An export writes a run's trained model to a file, whole or not at all."""

import os
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from backends.models.user_source import locate
from planner.errors import MAKE_ROOM, ExportError, PlannerError
from planner.export.formats import ExportFormat, export_format
from planner.export.trained_model import TensorDescription, TrainedModel, TrainedRun, trained_model, trained_run
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
    inputs: tuple[TensorDescription, ...]
    output: TensorDescription
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
    model, contents = _made(run, found, to, classes)
    for path, content in contents.items():
        _write(path, content)
    return Export(
        path=str(to),
        files=tuple(map(str, contents)),
        format=found.title,
        bytes=len(contents[to]),
        model=run.model,
        step=run.step,
        inputs=model.inputs,
        output=model.output,
        classes=model.classes,
        loads_with=found.loads_with,
        lines=found.lines(model, to),
        notes=model.notes,
    )


def _made(
    run: TrainedRun, found: ExportFormat, to: Path, classes: str | None
) -> tuple[TrainedModel, Mapping[Path, bytes]]:
    """The model and the content of each file. Raises PlannerError."""
    try:
        model = trained_model(run, found.framework, classes)
        return model, found.files(model, to)
    except PlannerError:
        raise
    except OSError as error:
        raise _unwritten(to, error) from error
    except Exception as error:
        raise ExportError(f"cannot export {run.model} to {to}: {_reason(error, run.model)}") from error


def _reason(error: Exception, model: str) -> str:
    """The first line of an error and, where it comes from a user's own file, where."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    if isinstance(error, ValueError):
        return text
    folder = os.path.dirname(os.path.abspath(locate(model)[0])) if ":" in model else None
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if folder and os.path.dirname(os.path.abspath(frame.filename)) == folder
    ]
    return f"{type(error).__name__}: {text}" + (f", at {own[-1].filename}:{own[-1].lineno}" if own else "")


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. Raises ExportError."""
    try:
        with whole_file(str(path), FOR_ALL) as file:
            file.write(content)
    except OSError as error:
        raise _unwritten(path, error) from error


def _unwritten(path: Path, error: OSError) -> ExportError:
    return ExportError(f"cannot write {path}: {error.strerror or error}; {MAKE_ROOM}")
