"""Keras's own files: a model with its weights and classes, and the weights of a user's own model.

A known model is one of Keras's own layers.
"""

from pathlib import Path

from planner.errors import ExportError
from planner.export.lines import Lines
from planner.export.onnx_torchscript import CLASSES_FILE
from planner.export.state_dict_files import building, importing
from planner.export.trained_model import TrainedModel


def keras(model: TrainedModel) -> bytes:
    """The file's content, in which Keras passes over the classes. Raises ExportError."""
    from backends.tensorflow import export

    _require_keras(model)
    dtype = model.image_dtype if model.job is None else ""
    return export.keras_file(model.keras, dtype, {CLASSES_FILE: "\n".join(model.classes)})


def keras_lines(model: TrainedModel, path: Path) -> Lines:
    load = f"model = tf.keras.models.load_model({str(path)!r})"
    if model.job is not None:
        return Lines(("import tensorflow as tf", load), _use(model))
    return Lines(
        (
            "import tensorflow as tf, zipfile",
            load,
            f"classes = zipfile.ZipFile({str(path)!r}).read({CLASSES_FILE!r}).decode().split('\\n')",
        ),
        (
            f"images = tf.zeros({model.inputs[0].example}, {model.image_dtype!r})  # put yours here",
            "print(classes[int(tf.argmax(model(images)[0]))])",
        ),
    )


def keras_weights(model: TrainedModel) -> bytes:
    """The file's content. Raises ExportError for a known model, whose class Keras has."""
    from backends.tensorflow import export

    if model.description is not None:
        raise ExportError(f"{model.run.model} has no class of yours that takes weights; export it to .keras")
    _require_keras(model)
    return export.weights_file(model.keras)


def keras_weights_lines(model: TrainedModel, path: Path) -> Lines:
    load = f"model.load_weights({str(path.resolve())!r})"
    if model.job is None:
        shape = (1, *model.image_shape)
        called = ("model = made[0]", f"images = tf.zeros({shape})  # put yours here", "model(images)", load)
        return Lines((*importing(model, "tensorflow as tf"), *called), ("print(model(images))",))
    made = ("model = made.model", *_making_variables(model), load)
    return Lines((*building(model.job, "tensorflow as tf"), *made), _use(model))


def _making_variables(model: TrainedModel) -> tuple[str, ...]:
    """A model of Keras may have no variables before it is called."""
    if model.arguments:
        return (f"model({model.arguments})",)
    return ("made.forward(model, next(iter(made.test.batch(1))))",)


def _use(model: TrainedModel) -> tuple[str, ...]:
    return (f"print(model({model.arguments}))  # put yours for the zeros",) if model.arguments else ()


def _require_keras(model: TrainedModel) -> None:
    """Raises ExportError for a tf.Module, with what remains."""
    from backends.tensorflow import export

    if not export.is_keras(model.keras):
        raise ExportError(
            f"{model.run.model} has a tf.Module, which no format of Keras holds; its variables are arrays of "
            f"{model.run.folder.checkpoint}, which docs/frameworks.md#trained-weights tells how to read"
        )
