"""The TensorFlow backend builds described models, and users' Keras models (from 2.4 on)."""

from typing import Optional, Union

from backends import models
from backends.models.layers import Model, Shape
from backends.tensorflow import environment, layers, runtime, user_model
from backends.tensorflow.replica import TensorFlowReplica
from backends.tensorflow.runtime import accelerator, version

__all__ = ["accelerator", "build", "version"]


def build(
    model: Union[str, Model],
    input_shape: Optional[Shape] = None,
    classes: Optional[int] = None,
    seed: int = 0,
    threads: int = 1,
) -> TensorFlowReplica:
    """A replica of a model in this process, on its first GPU or else on ``threads`` CPU threads.

    model: a name of ``models.MODELS``, a description, or ``path/to/file.py:function``.
    input_shape, classes: of the data; None for the model's own.
    threads: counts only in the first build of a process.
    seed: the same seed gives the same weights.
    A user's function returns (Keras model or tf.Module, (height, width, channels)). The model maps
    float32 (batch, height, width, channels) to (batch, classes).
    Raises ValueError where model and data do not fit, and for errors of the user's file.
    """
    runtime.use_threads(threads)
    kind = accelerator()[0]
    if isinstance(model, str) and models.is_user_model(model):
        own, shape, outputs = user_model.build(model, seed)
        models.agree(model, shape, outputs, input_shape, classes)
        return TensorFlowReplica(own, shape, outputs, kind)
    description = models.described(model, input_shape, classes)
    network = layers.Described(description, seed)
    replica = TensorFlowReplica(network, description.input_shape, description.classes, kind)
    replica.set_weights(models.initial_weights(description, seed))
    return replica
