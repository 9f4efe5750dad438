"""A run folder becomes a replica with the trained weights, in one framework."""

from pathlib import Path
from typing import NamedTuple

from backends import models
from backends.frameworks.base import FRAMEWORKS, Replica, framework, layout_of
from backends.training import checkpoint
from planner.errors import ExportError, RecordError
from planner.export.class_names import class_names
from planner.json_records import load
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.train.orders import Options
from planner.train.training_data import load_dataset

RUN_REMEDY = "name a run folder that `planner train` made"


class TrainedRun(NamedTuple):
    """What a run folder tells of its model before any framework is started.

    step: of the checkpoint.
    framework: the only one that can build a user's own model; None for a known model.
    """

    folder: RunFolder
    model: str
    step: int
    framework: str | None


class TrainedModel(NamedTuple):
    """A model with its trained weights.

    description: None for a user's own model.
    classes: a name for each output.
    notes: for the operator.
    """

    run: TrainedRun
    description: models.Model | None
    replica: Replica
    classes: tuple[str, ...]
    notes: tuple[str, ...] = ()


def trained_run(folder: RunFolder) -> TrainedRun:
    """Raises RecordError where the folder is none of a run, or has no checkpoint."""
    if not folder.path.is_dir():
        problem = "is no directory" if folder.path.exists() else "does not exist"
        raise RecordError(f"cannot export {folder.path}: the folder {problem}; {RUN_REMEDY}")
    if not folder.checkpoint.exists():
        raise RecordError(
            f"cannot export {folder.path}: it has no {folder.checkpoint.name}, the run wrote none; {RUN_REMEDY}"
        )
    try:
        meta = checkpoint.peek(str(folder.checkpoint))
        model, step = meta["model"], meta["step"]
    except (OSError, ValueError, KeyError) as error:
        raise RecordError(f"cannot export {folder.path}: {error}; {RUN_REMEDY}") from error
    own = models.is_user_model(model)
    return TrainedRun(folder, model, step, load(Plan, folder.plan, RUN_REMEDY).framework if own else None)


def trained_model(run: TrainedRun, computes_with: str, classes: str | None) -> TrainedModel:
    """Build the run's model in a framework and give it the checkpoint's weights and state.

    classes: the operator's ``--classes``.
    Raises PlannerError; errors of a user's own file are passed on.
    """
    assert computes_with in FRAMEWORKS
    options = load(Options, run.folder.options, RUN_REMEDY)
    notes: tuple[str, ...] = ()
    description = None
    if models.is_user_model(run.model):
        notes = _changes(run)
    else:
        description = _description(run, options.data)
    try:
        replica: Replica = framework(computes_with).build(description or run.model)
        saved = checkpoint.read_for(str(run.folder.checkpoint), layout_of(replica))
    except (OSError, ValueError) as error:
        raise ExportError(f"cannot export {run.folder.path}: {error}") from error
    replica.set_weights(saved.weights)
    replica.state[:] = saved.state
    replica.load()
    return TrainedModel(run, description, replica, class_names(classes, options.data, replica.classes), notes)


def _description(run: TrainedRun, data: str) -> models.Model:
    """The known model for the images of the run; of older runs, these are looked up in the data."""
    meta = checkpoint.peek(str(run.folder.checkpoint))
    if "input_shape" in meta:
        return models.model(run.model, tuple(meta["input_shape"]), meta["classes"])
    dataset = load_dataset(data)
    return models.model(run.model, dataset.input_shape, dataset.classes)


def _changes(run: TrainedRun) -> tuple[str, ...]:
    """A note where the user's file is no longer the one that was profiled and trained."""
    try:
        now = models.fingerprint(run.model)
    except (OSError, ValueError) as error:
        raise ExportError(
            f"cannot export {run.folder.path}: {error}; run this where `planner train` was run, with the file in place"
        ) from error
    if now == load(Plan, run.folder.plan, RUN_REMEDY).fingerprint:
        return ()
    path = Path(run.model.rpartition(":")[0])
    return (f"{path} has changed since it was trained; the weights are put into the model as it is now",)
