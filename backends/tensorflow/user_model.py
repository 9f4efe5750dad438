"""This module builds and checks a user's own TensorFlow model."""

import inspect
import random
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np
import tensorflow as tf

from backends.frameworks.base import NO_GRADIENT
from backends.jobs.failure import refusal
from backends.models import user
from backends.models.layers import Shape


class UserNetwork:
    """A Keras model or tf.Module that was called once, so that it has created its variables.

    trained, frozen: its named variables that are trained, and layers' weights that no step changes.
    kept: the frozen ones and, after them, others of floating-point numbers, unless they contain
    infinities, which are constants. Names are positions, because Keras would give other ones when
    the same model is built again.
    """

    def __init__(self, module: Any) -> None:
        trained = [_plain(variable) for variable in module.trainable_variables]
        own, weights = set(map(id, trained)), set(map(id, _weights_of_layers(module)))
        others = [each for each in map(_plain, module.variables) if id(each) not in own and _changes(each)]
        others.sort(key=lambda each: id(each) not in weights)
        self.trained, self.kept = _named(trained), _named(others)
        self.frozen = self.kept[: sum(id(each) in weights for each in others)]
        self.module = module
        self._call = tf.function(module)  # traces Python control flow that depends on tensors
        self._training, self._judging = call_arguments(module)

    def __call__(self, images: tf.Tensor, training: bool, step: tf.Tensor) -> tf.Tensor:
        """See layers.Described; ``step`` is not used, as layers with noise keep their own state."""
        return tf.cast(self._call(images, **(self._training if training else self._judging)), tf.float32)

    def gradients(self, tape: tf.GradientTape, loss: tf.Tensor, rate: tf.Tensor) -> List[tf.Tensor]:
        """See layers.Described.

        Gradients are scaled at the end: a scaled loss would change half precision and custom
        gradients. Variables that the loss does not depend on have zeros.
        Raises JobFailure where it depends on none.
        """
        variables = [variable for _, variable in self.trained]
        found = tape.gradient(loss, variables)
        if all(gradient is None for gradient in found):
            raise refusal(NO_GRADIENT)
        return [
            tf.zeros(variable.shape) if gradient is None else rate * tf.cast(tf.convert_to_tensor(gradient), tf.float32)
            for variable, gradient in zip(variables, found)
        ]


def build(model: str, seed: int) -> Tuple[UserNetwork, Shape, int]:
    """Build the user's model and check it with one black image: network, input shape, classes.

    model: ``path/to/file.py:function``. seed: of Python's, numpy's and TensorFlow's generators.
    Raises ValueError for a model or an output of the wrong form.
    """
    seed_everything(seed)
    module, shape = user.returned(model, "Keras model or tf.Module", is_module)
    output = module(tf.zeros((1,) + shape), **call_arguments(module)[1])
    return UserNetwork(module), shape, user.outputs(model, output)


def seed_everything(seed: int) -> None:
    """Seed all generators that a model or a data set may draw from."""
    random.seed(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)


def is_module(value: Any) -> bool:
    """Whether it is a Keras model or a tf.Module that can be called."""
    # Read from the class, because a Keras model that was not called yet may raise.
    return callable(value) and all(hasattr(type(value), name) for name in ("trainable_variables", "variables"))


def call_arguments(module: Any) -> Tuple[Dict[str, bool], Dict[str, bool]]:
    """Keywords that call the model in training and in evaluation."""
    function = getattr(module, "call", module)  # Keras's __call__ accepts any arguments
    if "training" in inspect.signature(function).parameters:
        return {"training": True}, {"training": False}
    return {}, {}


def _plain(variable: Any) -> tf.Variable:
    """The TensorFlow variable inside a Keras 3 variable."""
    return variable if isinstance(variable, tf.Variable) else variable.value


def _weights_of_layers(module: Any) -> Iterator[tf.Variable]:
    """What layers of Keras train unless they are frozen; a tf.Module does not tell."""
    for layer in getattr(module, "_flatten_layers", list)():
        of_keras_2: List[Any] = getattr(layer, "_trainable_weights", [])
        yield from map(_plain, getattr(layer, "_trainable_variables", of_keras_2))


def _changes(variable: tf.Variable) -> bool:
    return variable.dtype.is_floating and bool(tf.reduce_all(tf.math.is_finite(variable)))


def _named(variables: List[tf.Variable]) -> List[Tuple[str, tf.Variable]]:
    """Variables with names such as ``3_kernel``."""
    return [
        ("%d_%s" % (index, variable.name.split("/")[-1].split(":")[0]), variable)
        for index, variable in enumerate(variables)
    ]
