"""A network that fills a large GPU: six blocks of two convolutions, 128 to 512 channels."""

from torch import nn


def large():
    # type: () -> tuple
    """The module, and what images it takes: (height, width, channels)."""
    net = nn.Sequential(
        _block(1, 128, 1), _block(128, 128, 1), _block(128, 256, 2), _block(256, 256, 1),
        _block(256, 512, 2), _block(512, 512, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip
    return net, (28, 28, 1)


def _block(inputs, outputs, stride):
    # type: (int, int, int) -> nn.Module
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1), nn.BatchNorm2d(outputs), nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, 1, 1), nn.BatchNorm2d(outputs), nn.ReLU(),
    )  # fmt: skip
