"""A trained Keras model leaves the program as the file that Keras itself writes."""

import os
import tempfile
import zipfile
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import tensorflow as tf

from backends.frameworks.batch_axes import COUNTS, TensorLike, tensor_like
from backends.frameworks.call_text import call_text
from backends.jobs.job import LoadedJob
from backends.tensorflow.keras_layers import keras_model
from backends.tensorflow.layers import Described
from backends.tensorflow.replica import TensorFlowReplica


def keras_file(replica: TensorFlowReplica, dtype: str, texts: Dict[str, str]) -> bytes:
    """The content of a .keras file.

    dtype: of the data set's images; those that are no bytes are not scaled.
    texts: by name, further entries of this archive, which Keras passes over.
    A classifier of images takes them as the data set has them and gives probabilities.
    """
    model = _module(replica)
    if replica.input_shape:
        scaling = [tf.keras.layers.Rescaling(2 / 255, -1.0)] if dtype == "uint8" else []
        layers = [tf.keras.Input(replica.input_shape)] + scaling + [model, tf.keras.layers.Softmax()]
        model = tf.keras.Sequential(layers)
    return _saved(model.save, "model.keras", texts)


def weights_file(replica: TensorFlowReplica) -> bytes:
    """The content of a file that ``load_weights`` of a user's own Keras model reads."""
    return _saved(replica.network.module.save_weights, "model.weights.h5", {})


def is_keras(replica: TensorFlowReplica) -> bool:
    """Whether it is a model of Keras's, which other modules of TensorFlow are not."""
    return isinstance(replica.network, Described) or isinstance(replica.network.module, tf.keras.Model)


def described(replica: TensorFlowReplica, loaded: LoadedJob) -> Tuple[List[TensorLike], List[TensorLike], str]:
    """What a job's model takes, and what it gives, where it is called with a batch but its targets.

    Third is Python for what it is called with. Raises what the model does, and ValueError for a
    batch that is no tuple.
    """
    found = {}
    for count in COUNTS:
        samples, batch = next(loaded.test.batches(count))
        if not isinstance(batch, tuple):
            raise ValueError("its batches are not (inputs, targets), so that what the model takes is not known")
        taken = batch[0] if len(batch) == 2 else list(batch[:-1])
        outputs = replica.network.module(taken)
        found[samples] = tf.nest.flatten(taken), tf.nest.flatten(outputs)
    inputs, outputs = zip(*found.values())
    return _described("input", inputs), _described("output", outputs), call_text(taken, _zeros)


def _zeros(value: Any) -> Optional[str]:
    return "tf.zeros(%r, %r)" % (tuple(value.shape), value.dtype.name) if tf.is_tensor(value) else None


def _described(name: str, batches: Sequence[Sequence[Any]]) -> List[TensorLike]:
    shapes = zip(*([tuple(each.shape) for each in tensors] for tensors in batches))
    return [
        tensor_like("%s_%d" % (name, place), tf.as_dtype(batches[0][place].dtype).name, of_batches)
        for place, of_batches in enumerate(shapes)
    ]


def _saved(save: Callable[[str], None], name: str, texts: Dict[str, str]) -> bytes:
    """What Keras writes to a file of this name. texts: further entries of that archive, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        save(path)
        if texts:
            with zipfile.ZipFile(path, "a") as archive:
                for entry, text in texts.items():
                    archive.writestr(entry, text)
        with open(path, "rb") as stream:
            return stream.read()


def _module(replica: TensorFlowReplica) -> Any:
    """The user's own Keras model, or that of a known network."""
    if isinstance(replica.network, Described):
        return keras_model(replica.network, replica.input_shape)
    return replica.network.module
