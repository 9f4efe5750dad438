"""Layers describe a model independently of any framework.

A layer is a named tuple of numbers; a model is a tuple of layers. Shapes are (height, width,
channels) or, after Flatten and GlobalAveragePool, (units,). Windows are square. ``padding`` rows
and columns are added on each side; they never win a maximum and are not counted in an average.
"""

from typing import Any, NamedTuple, Tuple

Shape = Tuple[int, ...]


class Conv(NamedTuple):
    """Convolution of all input channels into each of ``channels`` output channels."""

    channels: int
    kernel: int
    stride: int = 1
    padding: int = 0
    bias: bool = True


class Depthwise(NamedTuple):
    """Convolution of every channel on its own, without bias."""

    kernel: int
    stride: int = 1
    padding: int = 0


class BatchNorm(NamedTuple):
    """Batch normalisation.

    Running statistic <- (1 - momentum) statistic + momentum batch statistic.
    """

    epsilon: float = 1e-5
    momentum: float = 0.1


class LocalResponseNorm(NamedTuple):
    """y = x / (bias + scale * sum of squares over ``size`` neighbouring channels) ** exponent."""

    size: int
    scale: float
    exponent: float
    bias: float


class Relu(NamedTuple):
    """max(x, 0)."""


class MaxPool(NamedTuple):
    """Largest value of each window."""

    window: int
    stride: int
    padding: int = 0


class AveragePool(NamedTuple):
    """Mean of each window's own values."""

    window: int
    stride: int
    padding: int = 0


class GlobalAveragePool(NamedTuple):
    """Mean of each channel: (height, width, channels) -> (channels,)."""


class Flatten(NamedTuple):
    """All values in one row, channel by channel (channels, height, width)."""


class Dense(NamedTuple):
    """Fully connected layer with bias; needs a flat input."""

    units: int


class Dropout(NamedTuple):
    """Zeroes a share ``rate`` of values while training; scales the rest by 1 / (1 - rate)."""

    rate: float


class Subsample(NamedTuple):
    """Every ``stride``-th row and column, then channels of zeros up to ``channels``."""

    channels: int
    stride: int


class Residual(NamedTuple):
    """branch(x) + shortcut(x); an empty shortcut is the identity."""

    branch: Tuple[Any, ...]
    shortcut: Tuple[Any, ...] = ()


class Concat(NamedTuple):
    """The channels of every branch of x, one branch after the other."""

    branches: Tuple[Tuple[Any, ...], ...]


class Model(NamedTuple):
    """A network: input (height, width, channels), number of classes, layers, and its source."""

    name: str
    input_shape: Shape
    classes: int
    layers: Tuple[Any, ...]
    source: str


def label(index: int, layer: Any) -> str:
    """Name of a layer within its sequence, such as ``3_conv``; the same in every framework."""
    return "%d_%s" % (index, type(layer).__name__.lower())
