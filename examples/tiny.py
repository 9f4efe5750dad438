"""A small network of one's own: 12,483 parameters, 50 kB, for images of Fashion-MNIST.

planner profile --model examples/tiny.py:tiny --data examples/fashion-mnist
"""

from torch import nn


def tiny():
    # type: () -> tuple
    """The module, and what images it takes: (height, width, channels)."""
    net = nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 5 * 5, 27), nn.ReLU(),
        nn.Linear(27, 10),
    )  # fmt: skip
    return net, (28, 28, 1)
