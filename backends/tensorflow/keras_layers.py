"""A described network becomes a model of Keras's own layers, which needs nothing else to load."""

from typing import Any, Callable, Dict, Tuple

import numpy as np
import tensorflow as tf

from backends.models import layers as kinds
from backends.models.layers import Shape, label
from backends.tensorflow.layers import Described, Scope, near_channels, window_shares

make = tf.keras.layers


def keras_model(network: Described, input_shape: Shape) -> Any:
    """The Keras model that maps float images (batch, height, width, channels) to logits.

    It has weights of its own. Raises ValueError where this Keras is older than 3.
    """
    if not hasattr(tf.keras, "ops"):
        raise ValueError(
            "TensorFlow %s has no Keras 3; remedy: export where TensorFlow is 2.16 or newer" % tf.__version__
        )
    images = tf.keras.Input(input_shape)
    return tf.keras.Model(images, _sequence(network.layers, images, network.scope(False, tf.constant(0))))


def _sequence(layers: Tuple[Any, ...], x: Any, scope: Scope) -> Any:
    for index, layer in enumerate(layers):
        x = _RULES[type(layer)](layer, x, scope.inside(label(index, layer)))
    return x


def _with(layer: Any, x: Any, *weights: np.ndarray) -> Any:
    """The output of a Keras layer, which gets these weights."""
    output = layer(x)
    layer.set_weights(weights)
    return output


def _convolution(layer: kinds.Conv, x: Any, scope: Scope) -> Any:
    made = make.Conv2D(layer.channels, layer.kernel, layer.stride, use_bias=layer.bias, name=scope.name)
    kernel = scope["weight"].numpy().transpose(2, 3, 1, 0)
    return _with(made, _padded(layer, x), kernel, *([scope["bias"].numpy()] if layer.bias else []))


def _depthwise(layer: kinds.Depthwise, x: Any, scope: Scope) -> Any:
    made = make.DepthwiseConv2D(layer.kernel, layer.stride, use_bias=False, name=scope.name)
    return _with(made, _padded(layer, x), scope["weight"].numpy().transpose(2, 3, 0, 1))


def _batch_norm(layer: kinds.BatchNorm, x: Any, scope: Scope) -> Any:
    made = make.BatchNormalization(momentum=1 - layer.momentum, epsilon=layer.epsilon, name=scope.name)
    return _with(made, x, *(scope[name].numpy() for name in ("weight", "bias", "running_mean", "running_var")))


def _response_norm(layer: kinds.LocalResponseNorm, x: Any, scope: Scope) -> Any:
    """Keras has no such layer: the sums over neighbouring channels are those of a frozen Dense."""
    channels = x.shape[3]
    sums = make.Dense(channels, trainable=False, name=scope.name)
    band = layer.scale * near_channels(channels, layer.size).astype(np.float32)
    divisor = _with(sums, make.Multiply()([x, x]), band, np.full(channels, layer.bias, np.float32))
    return make.Multiply()([x, tf.keras.ops.power(divisor, -layer.exponent)])


def _max_pool(layer: kinds.MaxPool, x: Any, scope: Scope) -> Any:
    if layer.padding:
        around = ((0, 0), (layer.padding, layer.padding), (layer.padding, layer.padding), (0, 0))
        x = tf.keras.ops.pad(x, around, constant_values=float(np.finfo(np.float32).min))
    return make.MaxPooling2D(layer.window, layer.stride)(x)


def _average_pool(layer: kinds.AveragePool, x: Any, scope: Scope) -> Any:
    mean = make.AveragePooling2D(layer.window, layer.stride)(_padded(layer, x))
    if not layer.padding:
        return mean
    return make.Rescaling(window_shares(layer, x.shape[1], x.shape[2]).tolist())(mean)


def _flatten(layer: kinds.Flatten, x: Any, scope: Scope) -> Any:
    return make.Flatten()(make.Permute((3, 1, 2))(x) if len(x.shape) == 4 else x)


def _dense(layer: kinds.Dense, x: Any, scope: Scope) -> Any:
    return _with(make.Dense(layer.units, name=scope.name), x, scope["weight"].numpy().T, scope["bias"].numpy())


def _subsample(layer: kinds.Subsample, x: Any, scope: Scope) -> Any:
    missing = layer.channels - x.shape[3]
    taken = make.MaxPooling2D(1, layer.stride)(x)
    return tf.keras.ops.pad(taken, ((0, 0), (0, 0), (0, 0), (0, missing)))


def _residual(layer: kinds.Residual, x: Any, scope: Scope) -> Any:
    branch = _sequence(layer.branch, x, scope.inside("branch"))
    return make.Add()([branch, _sequence(layer.shortcut, x, scope.inside("shortcut"))])


def _concat(layer: kinds.Concat, x: Any, scope: Scope) -> Any:
    parts = [_sequence(branch, x, scope.inside(str(index))) for index, branch in enumerate(layer.branches)]
    return make.Concatenate()(parts)


def _padded(layer: Any, x: Any) -> Any:
    return make.ZeroPadding2D(layer.padding)(x) if layer.padding else x


_RULES: Dict[type, Callable[[Any, Any, Scope], Any]] = {
    kinds.Conv: _convolution,
    kinds.Depthwise: _depthwise,
    kinds.BatchNorm: _batch_norm,
    kinds.LocalResponseNorm: _response_norm,
    kinds.Relu: lambda layer, x, scope: make.ReLU()(x),
    kinds.MaxPool: _max_pool,
    kinds.AveragePool: _average_pool,
    kinds.GlobalAveragePool: lambda layer, x, scope: make.GlobalAveragePooling2D()(x),
    kinds.Flatten: _flatten,
    kinds.Dense: _dense,
    kinds.Dropout: lambda layer, x, scope: make.Dropout(layer.rate)(x),
    kinds.Subsample: _subsample,
    kinds.Residual: _residual,
    kinds.Concat: _concat,
}
