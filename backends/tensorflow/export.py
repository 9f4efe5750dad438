"""A trained Keras model leaves the program as the file that Keras itself writes."""

import os
import tempfile
import zipfile
from typing import Any, Dict, List, Tuple

import tensorflow as tf

from backends.jobs.job import LoadedJob
from backends.tensorflow.keras_layers import keras_model
from backends.tensorflow.layers import Described
from backends.tensorflow.replica import TensorFlowReplica


def keras_file(replica: TensorFlowReplica, dtype: str, texts: Dict[str, str]) -> bytes:
    """The content of a .keras file.

    dtype: of the data set's images; those that are no bytes are not scaled.
    texts: by name, further entries of this archive, which Keras passes over.
    A classifier of images takes them as the data set has them and gives probabilities.
    Raises ValueError for what is no Keras model.
    """
    model = _module(replica)
    if replica.input_shape:
        scaling = [tf.keras.layers.Rescaling(2 / 255, -1.0)] if dtype == "uint8" else []
        layers = [tf.keras.Input(replica.input_shape)] + scaling + [model, tf.keras.layers.Softmax()]
        model = tf.keras.Sequential(layers)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        with zipfile.ZipFile(path, "a") as archive:
            for name, text in texts.items():
                archive.writestr(name, text)
        with open(path, "rb") as stream:
            return stream.read()


def _module(replica: TensorFlowReplica) -> Any:
    """The user's own Keras model, or that of a known network."""
    if isinstance(replica.network, Described):
        return keras_model(replica.network, replica.input_shape)
    model = getattr(replica.network, "module", None)
    if not isinstance(model, tf.keras.Model):
        raise ValueError("it is no Keras model, which alone a .keras file holds; export it to .pt or .onnx")
    return model


def signature(replica: TensorFlowReplica, loaded: LoadedJob) -> Tuple[List[Any], Any]:
    """(type, shape for a batch of one) of each input of the model, and of its output.

    Raises ValueError for inputs that are no tuple of tensors.
    """
    batch = next(batch for _, batch in loaded.test.batches(1))
    if not isinstance(batch, tuple):
        raise ValueError("its batches are not (inputs, targets), so that what the model takes is not known")
    inputs = [(each.dtype.name, tuple(each.shape)) for each in batch[:-1]]
    model = replica.network.module
    output = model(batch[0] if len(batch) == 2 else list(batch[:-1]))
    return inputs, (output.dtype.name, tuple(output.shape))
