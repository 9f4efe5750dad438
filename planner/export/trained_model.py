"""A run folder becomes a replica with the trained weights, in one framework."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from backends import models
from backends.frameworks.base import FRAMEWORKS, Replica, framework, layout_of
from backends.jobs.failure import JobFailure
from backends.jobs.job import LoadedJob
from backends.jobs.user_job import DATA_VARIABLE
from backends.protocol.member_specs import JobSpec, ReplicaSpec
from backends.training import checkpoint
from backends.training.workload import workload
from planner.errors import ExportError, RecordError
from planner.export.class_names import class_names
from planner.jobs.reference import JobReference, find_job
from planner.json_records import load
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.train.orders import Options

if TYPE_CHECKING:  # to import a framework takes seconds
    from backends.pytorch.replica import TorchReplica
    from backends.tensorflow.replica import TensorFlowReplica

RUN_REMEDY = "name a run folder that `planner train` made"
#: The text of ``metadata`` with the names of the classes, a line each, in the order of the outputs.
CLASSES = "classes"


class TrainedRun(NamedTuple):
    """What a run folder tells of its model before any framework is started.

    step: of the checkpoint.
    framework: the only one that can build a user's own model; None for a known model.
    job: the plan of a run of a job; None for other runs.
    """

    folder: RunFolder
    model: str
    step: int
    framework: str | None
    job: Plan | None = None


class TensorDescription(NamedTuple):
    """An input or output of an exported model; the first length, of the batch, is free: None."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]


class TrainedJob(NamedTuple):
    """A job with its trained replica. ``notes``: for the operator."""

    reference: JobReference
    loaded: LoadedJob
    replica: Replica
    notes: tuple[str, ...]


class TrainedModel(NamedTuple):
    """A model with its trained weights.

    description: None for a user's own model.
    classes: a name for each output; none for a job that names none.
    notes: for the operator.
    job: of a run of a job, whose inputs are those that its forward gives the model.
    inputs: of other runs, the images as the data set has them.
    """

    run: TrainedRun
    description: models.Model | None
    replica: Replica
    classes: tuple[str, ...]
    inputs: tuple[TensorDescription, ...]
    output: TensorDescription
    notes: tuple[str, ...] = ()
    job: TrainedJob | None = None

    @property
    def image_dtype(self) -> str:
        """Of the images that a classifier takes: uint8, which it scales, or float32."""
        return self.inputs[0].dtype


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


def trained_model(run: TrainedRun, computes_with: str, classes: str | None) -> TrainedModel:
    """Build the run's model in a framework and give it the checkpoint's weights and state.

    classes: the operator's ``--classes``.
    Raises PlannerError; errors of a user's own file are passed on.
    """
    assert computes_with in FRAMEWORKS
    if run.job is not None:
        return _of_job(run, run.job, classes)
    options = load(Options, run.folder.options, RUN_REMEDY)
    is_users = models.is_user_model(run.model)
    notes = _changes(run) if is_users else ()
    try:
        meta = checkpoint.peek(str(run.folder.checkpoint))
        description = None if is_users else models.model(run.model, tuple(meta["input_shape"]), meta["classes"])
        replica = _trained(framework(computes_with).build(description or run.model), run.folder.checkpoint)
        images = TensorDescription("images", meta["image_dtype"], (None, *replica.input_shape))
    except (OSError, ValueError) as error:
        raise ExportError(f"cannot export {run.folder.path}: {error}") from error
    probabilities = TensorDescription("probabilities", "float32", (None, replica.classes))
    names = class_names(classes, options.data, replica.classes)
    return TrainedModel(run, description, replica, names, (images,), probabilities, notes)


def _of_job(run: TrainedRun, plan: Plan, classes: str | None) -> TrainedModel:
    """The model of a job; its tensors are those of a first test batch."""
    job = trained_job(plan, run.folder.checkpoint)
    names = job.loaded.classes if classes is None else class_names(classes, "", len(classes.split(",")))
    found, made = _signature(plan.framework, job)
    inputs = tuple(
        TensorDescription(f"input_{place}", dtype, (None, *shape[1:])) for place, (dtype, shape) in enumerate(found)
    )
    output = TensorDescription("output", made[0], (None, *made[1][1:]))
    return TrainedModel(run, None, job.replica, names, inputs, output, job.notes, job)


def _signature(framework: str, job: TrainedJob) -> tuple[list[Any], Any]:
    """(type, shape for a batch of one) of each input of the job's model, and of its output."""
    if framework == "torch":
        from backends.pytorch import export

        return export.signature(export.of_job(torch_replica(job.replica), job.loaded))
    from backends.tensorflow.export import signature

    return signature(keras_replica(job.replica), job.loaded)


def torch_replica(replica: Replica) -> "TorchReplica":
    """A replica that PyTorch has built."""
    from backends.pytorch.replica import TorchReplica

    assert isinstance(replica, TorchReplica), "formats of torch are written of torch's replicas"
    return replica


def keras_replica(replica: Replica) -> "TensorFlowReplica":
    """A replica that TensorFlow has built."""
    from backends.tensorflow.replica import TensorFlowReplica

    assert isinstance(replica, TensorFlowReplica), "Keras's files are written of TensorFlow's replicas"
    return replica


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


def _trained(replica: Replica, path: Path) -> Replica:
    """The replica with the weights and state of a checkpoint. Raises OSError or ValueError."""
    saved = checkpoint.read_for(str(path), layout_of(replica))
    replica.set_weights(saved.weights)
    replica.state[:] = saved.state
    replica.load()
    return replica


def trained_job(plan: Plan, run_checkpoint: Path) -> TrainedJob:
    """Call the job's function on this machine and give its model the checkpoint's weights.

    Raises PlannerError, which names the line of an error in the user's code.
    """
    job = find_job(plan.run.model)
    spec = JobSpec(job.text, str(job.project.folder.resolve()), job.module, job.function)
    path = run_checkpoint.resolve()
    with contextlib.chdir(Path.cwd()):  # the function is called in its own folder
        try:
            found = workload(ReplicaSpec(plan.framework, job.text, job=spec))
            replica = _trained(found.build().replica, path)
        except (JobFailure, ValueError, OSError) as error:
            raise ExportError(f"cannot export {plan.run.model}: {error}{_hint(error)}") from error
    changed = job.fingerprint != plan.fingerprint
    notes = (f"{plan.run.model} has changed since it was profiled; the weights are put into the model as it is now",)
    assert found.brought is not None, "a spec with a job loads it"
    return TrainedJob(job, found.brought, replica, notes * changed)


def _hint(error: Exception) -> str:
    """The remedy where the job misses its data, which may be on the devices only."""
    missing = isinstance(error, JobFailure) and "FileNotFound" in str(error)
    return f"; if its data are elsewhere here, name their folder in {DATA_VARIABLE}" if missing else ""


def metadata(model: TrainedModel) -> dict[str, str]:
    """Texts by name: the classes; for people also the model, its steps, and its input."""
    shapes = (f"{each.name}: {each.dtype} {('batch', *each.shape[1:])}".replace("'", "") for each in model.inputs)
    return {
        CLASSES: "\n".join(model.classes),
        "model": model.run.model,
        "step": str(model.run.step),
        "inputs": "\n".join(shapes),
    }
