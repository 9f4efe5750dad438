"""model.keras is Keras's own file of a user's Keras model."""

from pathlib import Path

from planner.export.trained_model import TrainedModel


def files(model: TrainedModel, path: Path) -> dict[Path, bytes]:
    """The file's content. Raises ValueError for what is no Keras model."""
    from backends.tensorflow import export

    return {path: export.keras_file(model.replica)}  # type: ignore[arg-type]


def lines(model: TrainedModel, path: Path) -> tuple[str, ...]:
    """Python that loads and runs the file."""
    tensors = ", ".join(f"tf.zeros({(1, *each.shape[1:])}, '{each.dtype}')" for each in model.inputs)
    return (
        "import tensorflow as tf",
        f"model = tf.keras.models.load_model({str(path)!r})",
        f"inputs = [{tensors}]  # put yours here",
        "outputs = model(inputs[0] if len(inputs) == 1 else inputs)",
        "print(outputs)",
    )
