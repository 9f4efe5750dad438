"""A model with the weights of a run, in one framework, and what it takes and gives."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from backends import models
from backends.frameworks.base import Replica, framework, layout_of
from backends.frameworks.batch_axes import TensorLike
from backends.training import checkpoint
from planner.agents.exported import MARK
from planner.errors import ExportError
from planner.export.class_names import class_names
from planner.export.trained_run import RUN_REMEDY, TrainedRun
from planner.jobs.reference import JobReference
from planner.json_records import load
from planner.plan.file import Plan
from planner.train.orders import Options

if TYPE_CHECKING:  # to import a framework takes seconds
    from backends.pytorch.export import Exported
    from backends.tensorflow.replica import TensorFlowReplica

#: The text of ``metadata`` with the names of the classes, a line each, in the order of the outputs.
CLASSES = "classes"


class TrainedModel(NamedTuple):
    """A model with its trained weights.

    description: None for a user's own model.
    classes: a name for each output; none for a job that names none.
    inputs, outputs: of a job, what its forward gives the model, and that gives; none where unknown.
        Of other runs, the images as the data set has them, and probabilities.
    notes: for the operator.
    job: that the model is of; None for other runs.
    state: of PyTorch, what ``load_state_dict`` of the module takes.
    graph: of PyTorch, the module with inputs to trace it with; None where its call is not known.
    arguments: Python for what a job's model is called with; empty where unknown.
    by_hand: of PyTorch, how a job's model takes ``weights`` where no lines can build it.
    place: of PyTorch, Python for the module of a job, of what its function has ``made``.
    replica: of TensorFlow.
    """

    run: TrainedRun
    description: models.Model | None
    classes: tuple[str, ...]
    inputs: tuple[TensorLike, ...]
    outputs: tuple[TensorLike, ...]
    notes: tuple[str, ...] = ()
    job: JobReference | None = None
    state: dict[str, Any] = {}
    graph: "Exported | None" = None
    arguments: str = ""
    by_hand: str = ""
    place: str = "made.model"
    replica: Replica | None = None

    @property
    def image_dtype(self) -> str:
        """Of the images that a classifier takes: uint8, which it scales, or float32."""
        return self.inputs[0].dtype

    @property
    def image_shape(self) -> tuple[int, ...]:
        """(height, width, channels) of the images that a classifier takes."""
        return self.inputs[0].example[1:]

    @property
    def keras(self) -> "TensorFlowReplica":
        """The replica that TensorFlow has built."""
        from backends.tensorflow.replica import TensorFlowReplica

        assert isinstance(self.replica, TensorFlowReplica), "Keras's files are written of TensorFlow's replicas"
        return self.replica


def of_images(run: TrainedRun, computes_with: str, classes: str | None) -> TrainedModel:
    """Build a classifier of images in a framework and give it the checkpoint's weights and state.

    classes: the operator's ``--classes``.
    Raises PlannerError; errors of a user's own file are passed on.
    """
    options = load(Options, run.folder.options, RUN_REMEDY)
    is_users = models.is_user_model(run.model)
    notes = _changes(run) if is_users else ()
    try:
        meta = checkpoint.peek(str(run.folder.checkpoint))
        description = None if is_users else models.model(run.model, tuple(meta["input_shape"]), meta["classes"])
        replica = trained(framework(computes_with).build(description or run.model), run.folder.checkpoint)
    except (OSError, ValueError) as error:
        raise ExportError(f"cannot export {run.folder.path}: {error}") from error
    dtype, names = meta["image_dtype"], class_names(classes, options.data, replica.classes)
    images = _tensor("images", dtype, replica.input_shape)
    made = TrainedModel(
        run, description, names, (images,), (_tensor("probabilities", "float32", (replica.classes,)),), notes
    )
    return made._replace(replica=replica) if computes_with == "tensorflow" else _of_torch(made, replica, dtype)


def _of_torch(made: TrainedModel, replica: Replica, dtype: str) -> TrainedModel:
    from backends.pytorch import export
    from backends.pytorch.replica import TorchReplica

    assert isinstance(replica, TorchReplica), "formats of torch are written of torch's replicas"
    graph = export.of_images(replica, dtype)
    return made._replace(state=replica.module.state_dict(), graph=graph)


def _tensor(name: str, dtype: str, shape: tuple[int, ...]) -> TensorLike:
    return TensorLike(name, dtype, (None, *shape), (1, *shape))


def trained(replica: Replica, path: Path) -> Replica:
    """The replica with the weights and state of a checkpoint. Raises OSError or ValueError."""
    saved = checkpoint.read_for(str(path), layout_of(replica))
    replica.set_weights(saved.weights)
    replica.state[:] = saved.state
    replica.load()
    replica.load_frozen()
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


def metadata(model: TrainedModel) -> dict[str, str]:
    """Texts by name: the classes and a mark; for people also the model, its steps, its input."""
    shapes = (
        f"{each.name}: {each.dtype} ({', '.join('batch' if length is None else str(length) for length in each.shape)})"
        for each in model.inputs
    )
    return {
        "about": MARK.decode(),
        CLASSES: "\n".join(model.classes),
        "model": model.run.model,
        "step": str(model.run.step),
        "inputs": "\n".join(shapes),
    }
