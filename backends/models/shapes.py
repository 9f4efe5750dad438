"""Shapes, variables, multiply-adds and initial weights of a model follow from its description."""

from typing import Any, Callable, Dict, NamedTuple, Tuple

import numpy as np

from backends.models import layers as kinds
from backends.models.layers import Model, Shape, label

Named = Tuple[Tuple[str, Shape], ...]


class Trace(NamedTuple):
    """The output, variables and cost of a layer or sequence, for one input.

    variables, state: (name, shape) of arrays that are trained and that are not, in the order in
    which every framework keeps them. Kernels are (outputs, inputs, height, width), dense (outputs,
    inputs).
    multiply_adds: of one forward pass of one image, in convolutions and dense layers.
    """

    output: Shape
    variables: Named = ()
    state: Named = ()
    multiply_adds: int = 0


def trace(model: Model) -> Trace:
    """Follow one image through a model. Raises ValueError where a layer does not fit its input."""
    try:
        result = sequence(model.layers, model.input_shape)
    except ValueError as error:
        raise ValueError(
            "model %s on %s input: %s" % (model.name, "x".join(map(str, model.input_shape)), error)
        ) from None
    if result.output != (model.classes,):
        raise ValueError("model %s ends in shape %s, not in %d classes" % (model.name, result.output, model.classes))
    return result


def initial_weights(model: Model, seed: int) -> np.ndarray:
    """Flat float32 (parameters,): scales one, biases zero, weights uniform within ±limit.

    limit: sqrt(6 / inputs) for kernels (He et al., Delving deep into rectifiers, 2015), sqrt(6 /
    (inputs + outputs)) for dense weights (Glorot and Bengio, 2010).
    They are the same in every framework and every version of numpy: RandomState is frozen.
    """
    random = np.random.RandomState(seed)
    return np.concatenate([_initial(random, name, shape) for name, shape in trace(model).variables])


def _initial(random: np.random.RandomState, name: str, shape: Shape) -> np.ndarray:
    if len(shape) == 1:
        return np.full(shape, float(name.endswith(".weight")), np.float32)
    inputs, outputs = size(shape[1:]), shape[0] if len(shape) == 2 else 0
    limit = np.sqrt(6.0 / (inputs + outputs))
    return random.uniform(-limit, limit, size(shape)).astype(np.float32)


def sequence(layers: Tuple[Any, ...], shape: Shape) -> Trace:
    """The layers one after the other, from an input of this shape."""
    total = Trace(shape)
    for index, layer in enumerate(layers):
        name = label(index, layer)
        try:
            step = _RULES[type(layer)](layer, total.output)
        except ValueError as error:
            raise ValueError("%s: %s" % (name, error)) from None
        total = _joined(step.output, (("", total), (name + ".", step)))
    return total


def _joined(output: Shape, parts: Tuple[Tuple[str, Trace], ...]) -> Trace:
    return Trace(
        output,
        tuple((prefix + name, shape) for prefix, part in parts for name, shape in part.variables),
        tuple((prefix + name, shape) for prefix, part in parts for name, shape in part.state),
        sum(part.multiply_adds for _, part in parts),
    )


def _image(shape: Shape) -> Shape:
    if len(shape) != 3:
        raise ValueError("needs (height, width, channels), gets %s" % (shape,))
    return shape


def _slid(layer: Any, window: int, shape: Shape) -> Tuple[int, int]:
    """Height and width after sliding a window over an image."""
    height, width, _ = _image(shape)
    if min(height, width) + 2 * layer.padding < window:
        raise ValueError("a window of %d does not fit %dx%d; use larger images" % (window, height, width))
    return (
        (height + 2 * layer.padding - window) // layer.stride + 1,
        (width + 2 * layer.padding - window) // layer.stride + 1,
    )


def _conv(layer: kinds.Conv, shape: Shape) -> Trace:
    height, width = _slid(layer, layer.kernel, shape)
    weight = (layer.channels, shape[2], layer.kernel, layer.kernel)
    variables: Named = (("weight", weight),)
    if layer.bias:
        variables += (("bias", (layer.channels,)),)
    return Trace((height, width, layer.channels), variables, (), height * width * size(weight))


def _depthwise(layer: kinds.Depthwise, shape: Shape) -> Trace:
    height, width = _slid(layer, layer.kernel, shape)
    weight = (shape[2], 1, layer.kernel, layer.kernel)
    return Trace((height, width, shape[2]), (("weight", weight),), (), height * width * size(weight))


def _batch_norm(layer: kinds.BatchNorm, shape: Shape) -> Trace:
    each = (_image(shape)[2],)
    return Trace(shape, (("weight", each), ("bias", each)), (("running_mean", each), ("running_var", each)))


def _pool(layer: Any, shape: Shape) -> Trace:
    return Trace(_slid(layer, layer.window, shape) + shape[2:])


def _dense(layer: kinds.Dense, shape: Shape) -> Trace:
    if len(shape) != 1:
        raise ValueError("needs a flat input, gets %s; put Flatten before it" % (shape,))
    weight = (layer.units, shape[0])
    return Trace((layer.units,), (("weight", weight), ("bias", (layer.units,))), (), size(weight))


def _subsample(layer: kinds.Subsample, shape: Shape) -> Trace:
    height, width, channels = _image(shape)
    if layer.channels < channels:
        raise ValueError("cannot take %d channels down to %d" % (channels, layer.channels))
    return Trace((-(-height // layer.stride), -(-width // layer.stride), layer.channels))


def _residual(layer: kinds.Residual, shape: Shape) -> Trace:
    branch, shortcut = sequence(layer.branch, shape), sequence(layer.shortcut, shape)
    if branch.output != shortcut.output:
        raise ValueError("branch gives %s, shortcut %s" % (branch.output, shortcut.output))
    return _joined(branch.output, (("branch.", branch), ("shortcut.", shortcut)))


def _concat(layer: kinds.Concat, shape: Shape) -> Trace:
    parts = [sequence(branch, shape) for branch in layer.branches]
    if len({part.output[:2] for part in parts}) != 1:
        raise ValueError("branches of different height or width: %s" % [part.output for part in parts])
    output = parts[0].output[:2] + (sum(part.output[2] for part in parts),)
    return _joined(output, tuple(("%d." % index, part) for index, part in enumerate(parts)))


def _same(layer: Any, shape: Shape) -> Trace:
    return Trace(shape)


def size(shape: Shape) -> int:
    """Number of elements of an array of this shape."""
    return int(np.prod(shape, dtype=np.int64))


_RULES: Dict[type, Callable[[Any, Shape], Trace]] = {
    kinds.Conv: _conv,
    kinds.Depthwise: _depthwise,
    kinds.BatchNorm: _batch_norm,
    kinds.LocalResponseNorm: _same,
    kinds.Relu: _same,
    kinds.MaxPool: _pool,
    kinds.AveragePool: _pool,
    kinds.GlobalAveragePool: lambda layer, shape: Trace(_image(shape)[2:]),
    kinds.Flatten: lambda layer, shape: Trace((size(shape),)),
    kinds.Dense: _dense,
    kinds.Dropout: _same,
    kinds.Subsample: _subsample,
    kinds.Residual: _residual,
    kinds.Concat: _concat,
}
