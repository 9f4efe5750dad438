"""model.keras is Keras's own file; a known model is one of Keras's own layers."""

from pathlib import Path

from planner.export.trained_model import TrainedModel

#: The entry of the file that holds the class names, a name a line; Keras passes over it.
CLASSES = "classes.txt"


def files(model: TrainedModel, path: Path) -> dict[Path, bytes]:
    """The file's content. Raises ValueError for what is no Keras model."""
    from backends.tensorflow import export
    from backends.tensorflow.replica import TensorFlowReplica

    assert isinstance(model.replica, TensorFlowReplica), "Keras's files are written of TensorFlow's replicas"
    texts = {CLASSES: "\n".join(model.classes)}
    return {path: export.keras_file(model.replica, model.image_dtype, texts)}


def lines(model: TrainedModel, path: Path) -> tuple[str, ...]:
    """Python that loads the file and names the class of one image, or prints what a job gives."""
    tensors = ", ".join(f"tf.zeros({(1, *each.shape[1:])}, '{each.dtype}')" for each in model.inputs)
    load = f"model = tf.keras.models.load_model({str(path)!r})"
    if model.job is not None:
        called = "outputs = model(inputs[0] if len(inputs) == 1 else inputs)"
        return "import tensorflow as tf", load, f"inputs = [{tensors}]  # put yours here", called, "print(outputs)"
    return (
        "import tensorflow as tf, zipfile",
        load,
        f"classes = zipfile.ZipFile({str(path)!r}).read({CLASSES!r}).decode().split('\\n')",
        f"images = {tensors}  # put yours here",
        "print(classes[int(tf.argmax(model(images)[0]))])",
    )
