"""A TensorFlow model of the user's own is built and checked here."""

import inspect
import random
from typing import Any, List, Tuple

import numpy as np
import tensorflow as tf

from backends.models import user
from backends.models.layers import Shape


class Own:
    """A Keras model or tf.Module that was called before, so that it has its variables.

    trained, kept: its variables, named after their places, because Keras counts on from model to
    model, so that the same model has other names when it is built again. Frozen variables are
    kept, and so are all others that hold floating-point numbers, but for those that hold
    infinities: constants.
    """

    def __init__(self, module: Any) -> None:
        trained = [_plain(variable) for variable in module.trainable_variables]
        others = [_plain(variable) for variable in module.variables]
        own = set(map(id, trained))
        self.trained = _named(trained)
        self.kept = _named([variable for variable in others if id(variable) not in own and _changes(variable)])
        self._call = tf.function(module)  # here, and nowhere else, control flow in Python may depend on tensors
        self._training, self._judging = _ways(module)

    def __call__(self, images: tf.Tensor, training: bool, step: tf.Tensor) -> tf.Tensor:
        """See layers.Described; step: not used, what draws keeps account of it."""
        return tf.cast(self._call(images, **(self._training if training else self._judging)), tf.float32)

    def gradients(self, tape: tf.GradientTape, loss: tf.Tensor, rate: tf.Tensor) -> List[tf.Tensor]:
        """See layers.Described. Scaled at the end: half precision or a gradient of the user's
        making would see it.
        """
        variables = [variable for _, variable in self.trained]
        found = tape.gradient(loss, variables, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        return [rate * tf.cast(tf.convert_to_tensor(gradient), tf.float32) for gradient in found]


def build(model: str, seed: int) -> Tuple[Own, Shape, int]:
    """What the user's function returns, checked with one black image: network, input shape,
    classes.

    model: ``path/to/file.py:function``. The same seed gives the same weights where they are drawn
    from Python's, numpy's or TensorFlow's generators, as Keras does. Raises ValueError for what
    does not fit.
    """
    random.seed(seed)
    np.random.seed(seed)
    tf.random.set_seed(seed)
    module, shape = user.returned(model, "Keras model or tf.Module", _is_module)
    output = module(tf.zeros((1,) + shape), **_ways(module)[1])
    return Own(module), shape, user.outputs(model, output)


def _is_module(value: Any) -> bool:
    # Asked of its class, because a Keras model that was not called yet may complain.
    return callable(value) and all(hasattr(type(value), name) for name in ("trainable_variables", "variables"))


def _ways(module: Any) -> Any:
    """How to call it when it trains and when it is judged."""
    function = getattr(module, "call", module)  # Keras has its own __call__, which takes anything
    if "training" in inspect.signature(function).parameters:
        return {"training": True}, {"training": False}
    return {}, {}


def _plain(variable: Any) -> tf.Variable:
    """TensorFlow's variable, which that of Keras 3 holds."""
    return variable if isinstance(variable, tf.Variable) else variable.value


def _changes(variable: tf.Variable) -> bool:
    return variable.dtype.is_floating and bool(tf.reduce_all(tf.math.is_finite(variable)))


def _named(variables: List[tf.Variable]) -> List[Tuple[str, tf.Variable]]:
    """As ``3_kernel``."""
    return [
        ("%d_%s" % (index, variable.name.split("/")[-1].split(":")[0]), variable)
        for index, variable in enumerate(variables)
    ]
