"""Described layers are built from TensorFlow's operations.

Arrays have the shapes of the descriptions, as in other frameworks: kernels are (outputs, inputs,
height, width).
Images are (batch, height, width, channels), the only layout that TensorFlow computes on a CPU.
"""

import zlib
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import tensorflow as tf

from backends.models import layers as kinds
from backends.models.layers import Model, label
from backends.models.shapes import trace

Named = List[Tuple[str, Any]]


class Described:
    """A described model with its variables.

    trained, kept: named float32 variables that are trained and that are not, in the order of
    ``shapes.trace``.
    """

    def __init__(self, model: Model, seed: int) -> None:
        found = trace(model)
        self.trained: Named = [(name, tf.Variable(tf.zeros(shape))) for name, shape in found.variables]
        self.kept: Named = [
            (name, tf.Variable(tf.fill(shape, float(name.endswith("running_var"))), trainable=False))
            for name, shape in found.state
        ]
        self.layers = model.layers
        self.frozen: Named = []
        self._arrays = dict(self.trained + self.kept)
        self._seed = seed

    def __call__(self, images: tf.Tensor, training: bool, step: tf.Tensor) -> tf.Tensor:
        """Logits (batch, classes) of images, float32 (batch, height, width, channels).

        step: seeds the noise of dropout.
        """
        return _sequence(self.layers, images, self.scope(training, step))

    def scope(self, training: bool, step: tf.Tensor) -> "Scope":
        """The arrays of the whole model."""
        return Scope(self._arrays, training, self._seed, step)

    def gradients(self, tape: tf.GradientTape, loss: tf.Tensor, rate: tf.Tensor) -> List[tf.Tensor]:
        """Gradients of ``rate * loss``; to scale the output gradient costs nothing."""
        return list(tape.gradient(loss, [variable for _, variable in self.trained], rate))


class Scope:
    """The position of a layer in a model: its arrays by name, and how to compute."""

    def __init__(
        self, arrays: Dict[str, tf.Variable], training: bool, seed: int, step: tf.Tensor, prefix: str = ""
    ) -> None:
        self.training = training
        self._arrays, self._seed, self._step, self._prefix = arrays, seed, step, prefix

    def __getitem__(self, name: str) -> tf.Variable:
        return self._arrays[self._prefix + name]

    @property
    def name(self) -> str:
        """The layer's place in the model, such as ``3_residual.branch.0_conv``."""
        return self._prefix[:-1]

    def inside(self, name: str) -> "Scope":
        """The scope of a nested layer."""
        return Scope(self._arrays, self.training, self._seed, self._step, self._prefix + name + ".")

    def uniform(self, shape: Any) -> tf.Tensor:
        """Random numbers in [0, 1) that depend only on seed, layer and step."""
        layer = zlib.crc32(("%d %s" % (self._seed, self._prefix)).encode()) & 0x7FFFFFFF
        return tf.random.stateless_uniform(shape, tf.stack([layer, self._step]))


def _sequence(layers: Tuple[Any, ...], x: tf.Tensor, scope: Scope) -> tf.Tensor:
    for index, layer in enumerate(layers):
        x = _RULES[type(layer)](layer, x, scope.inside(label(index, layer)))
    return x


def _convolution(layer: kinds.Conv, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    if layer.kernel == 1 and not layer.padding:
        return _pointwise(layer, x[:, :: layer.stride, :: layer.stride] if layer.stride > 1 else x, scope)
    kernel = tf.transpose(scope["weight"], (2, 3, 1, 0))
    return _biased(layer, tf.nn.conv2d(x, kernel, layer.stride, _padding(layer)), scope)


def _pointwise(layer: kinds.Conv, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    """A 1x1 convolution as a matrix product.

    It is faster on a CPU, and the kernel need not be transposed.
    """
    inputs = x.shape[3]
    kernel = tf.reshape(scope["weight"], (layer.channels, inputs))
    product = tf.matmul(tf.reshape(x, (-1, inputs)), kernel, transpose_b=True)
    return tf.reshape(_biased(layer, product, scope), tuple(x.shape[:3]) + (layer.channels,))


def _biased(layer: kinds.Conv, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    return tf.nn.bias_add(x, scope["bias"]) if layer.bias else x


def _depthwise(layer: kinds.Depthwise, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    kernel = tf.transpose(scope["weight"], (2, 3, 0, 1))
    return tf.nn.depthwise_conv2d(x, kernel, (1, layer.stride, layer.stride, 1), _padding(layer))


def _batch_norm(layer: kinds.BatchNorm, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    """Batch normalisation as in torch: biased variance of the batch, unbiased running variance.

    ``tf.nn`` is not used, because it raises epsilons below 1.001e-5.
    """
    mean, variance = scope["running_mean"], scope["running_var"]
    result = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=scope["weight"],
        offset=scope["bias"],
        mean=mean,
        variance=variance,
        epsilon=layer.epsilon,
        exponential_avg_factor=layer.momentum if scope.training else 1.0,
        is_training=scope.training,
    )
    if scope.training:
        mean.assign(result.batch_mean)
        variance.assign(result.batch_variance)
    return result.y


def _response_norm(layer: kinds.LocalResponseNorm, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    """Local response normalisation, three times as fast on a CPU as ``tf.nn``'s.

    Sums are products with a band matrix of ones, powers are computed through logarithms.
    """
    channels = x.shape[3]
    sums = tf.matmul(tf.reshape(x * x, (-1, channels)), tf.constant(near_channels(channels, layer.size), x.dtype))
    return x * tf.exp(-layer.exponent * tf.math.log(tf.reshape(layer.bias + layer.scale * sums, x.shape)))


def near_channels(channels: int, size: int) -> np.ndarray:
    """bool (channels, channels): whether two channels are in one neighbourhood of ``size``."""
    index = np.arange(channels)
    near: np.ndarray = np.abs(index[:, None] - index[None, :]) <= size // 2
    return near


def _max_pool(layer: kinds.MaxPool, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    if layer.padding:
        x = tf.pad(x, _around(layer.padding), constant_values=x.dtype.min)  # the pool's own padding is slow
    return tf.nn.max_pool2d(x, layer.window, layer.stride, "VALID")


def _average_pool(layer: kinds.AveragePool, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    if not layer.padding:
        return tf.nn.avg_pool2d(x, layer.window, layer.stride, "VALID")
    mean = tf.nn.avg_pool2d(tf.pad(x, _around(layer.padding)), layer.window, layer.stride, "VALID")
    return mean * tf.constant(window_shares(layer, x.shape[1], x.shape[2]))


def window_shares(layer: kinds.AveragePool, height: int, width: int) -> np.ndarray:
    """The image's share of each padded window: float32 (height, width, 1) of the output.

    The mean over a padded window is too small by this factor.
    """
    rows, columns = (_within(layer, length) for length in (height, width))
    shares: np.ndarray = layer.window**2 / (rows[:, None] * columns[None, :])
    return shares.astype(np.float32)[:, :, None]


def _within(layer: kinds.AveragePool, length: int) -> np.ndarray:
    """The number of rows of each window that belong to the image."""
    starts = np.arange(-layer.padding, length + layer.padding - layer.window + 1, layer.stride)
    return np.minimum(starts + layer.window, length) - np.maximum(starts, 0)


def _flatten(layer: kinds.Flatten, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    return tf.reshape(tf.transpose(x, (0, 3, 1, 2)) if len(x.shape) == 4 else x, (x.shape[0], -1))


def _dense(layer: kinds.Dense, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    return tf.nn.bias_add(tf.matmul(x, scope["weight"], transpose_b=True), scope["bias"])


def _dropout(layer: kinds.Dropout, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    if not scope.training:
        return x
    stays = tf.cast(scope.uniform(x.shape) >= layer.rate, x.dtype)
    return x * (stays / (1.0 - layer.rate))


def _subsample(layer: kinds.Subsample, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    missing = layer.channels - x.shape[3]
    return tf.pad(x[:, :: layer.stride, :: layer.stride], ((0, 0), (0, 0), (0, 0), (0, missing)))


def _residual(layer: kinds.Residual, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    branch = _sequence(layer.branch, x, scope.inside("branch"))
    return branch + _sequence(layer.shortcut, x, scope.inside("shortcut"))


def _concat(layer: kinds.Concat, x: tf.Tensor, scope: Scope) -> tf.Tensor:
    parts = [_sequence(branch, x, scope.inside(str(index))) for index, branch in enumerate(layer.branches)]
    return tf.concat(parts, 3)


def _padding(layer: Any) -> Any:
    """The padding argument of a convolution; explicit numbers would take twice as long."""
    if not layer.padding:
        return "VALID"
    return "SAME" if layer.stride == 1 and 2 * layer.padding == layer.kernel - 1 else _around(layer.padding)


def _around(padding: int) -> Any:
    """Padding by so many rows and columns on each side."""
    return ((0, 0), (padding, padding), (padding, padding), (0, 0))


_RULES: Dict[type, Callable[[Any, tf.Tensor, Scope], tf.Tensor]] = {
    kinds.Conv: _convolution,
    kinds.Depthwise: _depthwise,
    kinds.BatchNorm: _batch_norm,
    kinds.LocalResponseNorm: _response_norm,
    kinds.Relu: lambda layer, x, scope: tf.nn.relu(x),
    kinds.MaxPool: _max_pool,
    kinds.AveragePool: _average_pool,
    kinds.GlobalAveragePool: lambda layer, x, scope: tf.reduce_mean(x, (1, 2)),
    kinds.Flatten: _flatten,
    kinds.Dense: _dense,
    kinds.Dropout: _dropout,
    kinds.Subsample: _subsample,
    kinds.Residual: _residual,
    kinds.Concat: _concat,
}
