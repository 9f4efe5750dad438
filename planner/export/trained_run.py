"""A run folder tells what was trained, before any framework is started."""

from typing import NamedTuple

from backends import models
from backends.training import checkpoint
from planner.errors import ExportError, RecordError
from planner.json_records import load
from planner.paths import RunFolder
from planner.plan.file import Plan

RUN_REMEDY = "name a run folder that `planner train` made"


class TrainedRun(NamedTuple):
    """What a run folder tells of its model.

    step: of the checkpoint.
    framework: the only one that can build a user's own model; None for a known model.
    job: the plan of a run of a job; None for other runs.
    """

    folder: RunFolder
    model: str
    step: int
    framework: str | None
    job: Plan | None = None

    def checkpoint(self) -> checkpoint.Checkpoint:
        """Its last. Raises ExportError where it cannot be read."""
        try:
            return checkpoint.read(str(self.folder.checkpoint))
        except (OSError, ValueError) as error:
            raise ExportError(f"cannot export {self.folder.path}: {error}") from error


def trained_run(folder: RunFolder) -> TrainedRun:
    """Raises RecordError where the folder is none of a run, or has no checkpoint."""
    folder.require_checkpoint("export", RUN_REMEDY, RUN_REMEDY)
    try:
        meta = checkpoint.peek(str(folder.checkpoint))
        model, step = meta["model"], meta["step"]
    except (OSError, ValueError, KeyError) as error:
        raise RecordError(f"cannot export {folder.path}: {error}; {RUN_REMEDY}") from error
    if not models.is_user_model(model):
        return TrainedRun(folder, model, step, None)
    plan = load(Plan, folder.plan, RUN_REMEDY)
    return TrainedRun(folder, model, step, plan.framework, plan if plan.run.job else None)
