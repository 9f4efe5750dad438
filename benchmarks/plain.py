"""Plain models train as in a textbook, with each framework's own layers and optimizer.

Each of them returns a function that makes one step with (images, labels) and waits for its loss.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from backends.models import layers as kinds
from backends.models.layers import Model

Step = Callable[[np.ndarray, np.ndarray], float]
RATE, MOMENTUM = 1e-4, 0.9


def torch_step(model: Model) -> Step:
    import torch
    from torch.nn import functional

    from backends.pytorch.layers import build

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    module = build(model.layers, model.input_shape).to(device)
    optimizer = torch.optim.SGD(module.parameters(), RATE, MOMENTUM)

    def step(images: np.ndarray, labels: np.ndarray) -> float:
        optimizer.zero_grad()
        bytes_of_pixels = torch.from_numpy(images).to(device)
        pixels = bytes_of_pixels.permute(0, 3, 1, 2).contiguous().float().mul_(2 / 255).sub_(1)
        loss = functional.cross_entropy(module(pixels), torch.from_numpy(labels).to(device))
        loss.backward()
        optimizer.step()
        return float(loss.item())

    return step


def tensorflow_step(model: Model) -> Step:
    import tensorflow as tf

    inputs = tf.keras.Input(model.input_shape)
    module = tf.keras.Model(inputs, _keras(model.layers, inputs))
    variables = module.trainable_variables
    velocities = [tf.Variable(tf.zeros(variable.shape)) for variable in variables]

    @tf.function(autograph=False)
    def learn(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            logits = module(tf.cast(images, tf.float32) * (2 / 255) - 1, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        for variable, velocity, gradient in zip(variables, velocities, tape.gradient(loss, variables), strict=True):
            plain = variable if isinstance(variable, tf.Variable) else variable.value
            tf.raw_ops.ResourceApplyKerasMomentum(
                var=plain.handle, accum=velocity.handle, lr=RATE, grad=gradient, momentum=MOMENTUM
            )
        return loss

    return lambda images, labels: float(learn(images, labels))


def _keras(layers: tuple[Any, ...], x: Any) -> Any:
    for layer in layers:
        x = _keras_layer(layer, x)
    return x


def _keras_layer(layer: Any, x: Any) -> Any:
    import tensorflow as tf

    keras = tf.keras.layers
    match layer:
        case kinds.Conv():
            x, padding = _padded(layer, layer.kernel, x)
            return keras.Conv2D(layer.channels, layer.kernel, layer.stride, padding, use_bias=layer.bias)(x)
        case kinds.Depthwise():
            x, padding = _padded(layer, layer.kernel, x)
            return keras.DepthwiseConv2D(layer.kernel, layer.stride, padding, use_bias=False)(x)
        case kinds.BatchNorm():
            return keras.BatchNormalization(momentum=1 - layer.momentum, epsilon=layer.epsilon)(x)
        case kinds.LocalResponseNorm():
            options = layer.size // 2, layer.bias, layer.scale, layer.exponent
            return keras.Lambda(lambda y: tf.nn.local_response_normalization(y, *options))(x)
        case kinds.MaxPool():  # of what is not negative, so that no zero around it wins
            return keras.MaxPooling2D(layer.window, layer.stride)(_padded(layer, layer.window, x)[0])
        case kinds.AveragePool():
            return keras.AveragePooling2D(layer.window, layer.stride)(_padded(layer, layer.window, x)[0])
        case kinds.Dense():
            return keras.Dense(layer.units)(x)
        case kinds.Dropout():
            return keras.Dropout(layer.rate)(x)
        case kinds.Residual():
            return keras.Add()([_keras(layer.branch, x), _keras(layer.shortcut, x)])
        case kinds.Concat():
            return keras.Concatenate()([_keras(branch, x) for branch in layer.branches])
        case kinds.Subsample():
            missing = layer.channels - x.shape[-1]
            padding = ((0, 0), (0, 0), (0, 0), (0, missing))
            return keras.Lambda(lambda y: tf.pad(y[:, :: layer.stride, :: layer.stride], padding))(x)
    same = {kinds.Relu: keras.ReLU, kinds.GlobalAveragePool: keras.GlobalAveragePooling2D, kinds.Flatten: keras.Flatten}
    return same[type(layer)]()(x)


def _padded(layer: Any, window: int, x: Any) -> tuple[Any, str]:
    """The input, padded if need be, and what Keras calls the padding that remains to be done."""
    import tensorflow as tf

    if not layer.padding:
        return x, "valid"
    if layer.stride == 1 and 2 * layer.padding == window - 1:
        return x, "same"
    return tf.keras.layers.ZeroPadding2D(layer.padding)(x), "valid"
