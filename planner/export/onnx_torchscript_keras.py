"""TorchScript, ONNX and Keras: one file that holds a model with its weights and its classes.

model.pt loads with torch alone, from 1.10 to today's, in Python and in C++. A file of
``torch.export`` would be read by the newest versions of torch only, which boards lack. model.onnx
loads with onnxruntime and with many other programs. model.keras is Keras's own file; a known model
is one of Keras's own layers.

The lines are Python that loads the file and names the class of one image, or prints what a job
gives.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from planner.export.trained_model import CLASSES, TrainedModel, keras_replica, metadata, torch_replica

if TYPE_CHECKING:
    from backends.pytorch.export import Exported

#: The entry of files of TorchScript and Keras that holds the class names, a name a line.
CLASSES_FILE = "classes.txt"


def torchscript(model: TrainedModel) -> bytes:
    """The file's content. Raises ValueError where the model cannot be traced."""
    from backends.pytorch import onnx_torchscript

    return onnx_torchscript.torchscript(_exported(model), {CLASSES_FILE: "\n".join(model.classes)})


def torchscript_lines(model: TrainedModel, path: Path) -> tuple[str, ...]:
    load = f"torch.jit.load({str(path)!r}, map_location='cpu', _extra_files=extra)"
    tensors = ", ".join(
        f"torch.zeros({', '.join(map(str, (1, *each.shape[1:])))}, dtype=torch.{each.dtype})" for each in model.inputs
    )
    loaded = ("import torch", f"extra = {{{CLASSES_FILE!r}: ''}}", f"model = {load}")
    if model.job is not None:
        return *loaded, f"inputs = [{tensors}]  # put yours here", "print(model(*inputs))"
    return (
        *loaded,
        f"images = {tensors}  # put yours here",
        f"print(extra[{CLASSES_FILE!r}].decode().split('\\n')[model(images)[0].argmax()])",
    )


def onnx(model: TrainedModel) -> bytes:
    """The file's content. Raises ValueError where torch cannot write it."""
    from backends.pytorch import onnx_torchscript

    return onnx_torchscript.onnx(_exported(model), metadata(model))


def onnx_lines(model: TrainedModel, path: Path) -> tuple[str, ...]:
    feeds = ", ".join(f"{each.name!r}: numpy.zeros({(1, *each.shape[1:])}, '{each.dtype}')" for each in model.inputs)
    names = f"session.get_modelmeta().custom_metadata_map[{CLASSES!r}].split('\\n')"
    return (
        "import numpy, onnxruntime",
        f"session = onnxruntime.InferenceSession({str(path)!r})",
        f"inputs = {{{feeds}}}  # put yours here",
        f"({model.output.name},) = session.run(None, inputs)",
        "print(output)" if model.job is not None else f"print({names}[probabilities[0].argmax()])",
    )


def keras(model: TrainedModel) -> bytes:
    """The file's content, in which Keras passes over the classes.

    Raises ValueError for what is no Keras model.
    """
    from backends.tensorflow import export

    return export.keras_file(keras_replica(model.replica), model.image_dtype, {CLASSES_FILE: "\n".join(model.classes)})


def keras_lines(model: TrainedModel, path: Path) -> tuple[str, ...]:
    tensors = ", ".join(f"tf.zeros({(1, *each.shape[1:])}, '{each.dtype}')" for each in model.inputs)
    load = f"model = tf.keras.models.load_model({str(path)!r})"
    if model.job is not None:
        called = "outputs = model(inputs[0] if len(inputs) == 1 else inputs)"
        return "import tensorflow as tf", load, f"inputs = [{tensors}]  # put yours here", called, "print(outputs)"
    return (
        "import tensorflow as tf, zipfile",
        load,
        f"classes = zipfile.ZipFile({str(path)!r}).read({CLASSES_FILE!r}).decode().split('\\n')",
        f"images = {tensors}  # put yours here",
        "print(classes[int(tf.argmax(model(images)[0]))])",
    )


def _exported(model: TrainedModel) -> "Exported":
    from backends.pytorch import export

    replica = torch_replica(model.replica)
    if model.job is not None:
        return export.of_job(replica, model.job.loaded)
    return export.of_images(replica, model.image_dtype)
