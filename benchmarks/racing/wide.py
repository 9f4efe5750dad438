"""A network of 25 MB with short steps: nearly all of its time is spent on its exchange.

A model file as users write them: it goes to devices, where Python 3.6 and the agent's own packages
are all there is.
"""

from torch import nn

#: Units of each of both hidden layers.
WIDTH = 2140


def wide() -> "tuple[nn.Module, tuple[int, ...]]":
    """(module, input shape), for images of Fashion-MNIST."""
    layers = (nn.Flatten(), nn.Linear(784, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10))
    return nn.Sequential(*layers), (28, 28, 1)
