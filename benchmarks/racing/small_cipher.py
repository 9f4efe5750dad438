"""Another reading of DLion's Cipher pools after each padded convolution: 0.95 MB.

A model file as users write them: it goes to devices, where Python 3.6 and the agent's own packages
are all there is.
"""

from torch import nn

from backends.models.layers import Conv, Dense, Flatten, MaxPool, Relu
from backends.pytorch import layers

SHAPE = (28, 28, 1)


def small_cipher() -> "tuple[nn.Module, tuple[int, ...]]":
    """(module, input shape), weights as He et al.

    (2015) draw them: torch's own start learns nothing for 30 steps.
    """
    described = (
        Conv(10, 5, 1, 2), Relu(), MaxPool(2, 2),
        Conv(20, 5, 1, 2), Relu(), MaxPool(2, 2),
        Conv(100, 5, 1, 2), Relu(), MaxPool(2, 2),
        Flatten(),
        Dense(200), Relu(),
        Dense(10),
    )  # fmt: skip
    module = layers.build(described, SHAPE)
    for part in module:
        if hasattr(part, "weight"):
            nn.init.kaiming_uniform_(part.weight, nonlinearity="relu")
            nn.init.zeros_(part.bias)
    return module, SHAPE
