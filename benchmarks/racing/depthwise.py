"""A depthwise separable network of 0.27 MB: much computing for its bytes, as on phones and boards.

A model file as users write them: it goes to devices, where Python 3.6 and the agent's own packages
are all there is.
"""

from torch import nn

from backends.models.layers import BatchNorm, Conv, Dense, Depthwise, GlobalAveragePool, Relu
from backends.pytorch import layers

#: Of Fashion-MNIST's images, and of CIFAR-10's.
GREY, COLOUR = (28, 28, 1), (32, 32, 3)
#: Channels and stride of each block, a fraction of MobileNet's (Howard et al., 2017, table 1).
BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2))


def depthwise() -> "tuple[nn.Module, tuple[int, ...]]":
    """(module, input shape), with torch's own initial weights."""
    return _built(GREY)


def depthwise_colour() -> "tuple[nn.Module, tuple[int, ...]]":
    """The same for images of CIFAR-10's size."""
    return _built(COLOUR)


def _built(shape: "tuple[int, ...]") -> "tuple[nn.Module, tuple[int, ...]]":
    described = (Conv(32, 3, 2, 1, bias=False), BatchNorm(), Relu())
    for channels, stride in BLOCKS:
        described += (Depthwise(3, stride, 1), BatchNorm(), Relu())
        described += (Conv(channels, 1, bias=False), BatchNorm(), Relu())
    described += (GlobalAveragePool(), Dense(10))
    return layers.build(described, shape), shape
