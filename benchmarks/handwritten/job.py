"""A convolutional network of 2.3 MB on images of noise: the model and data of both rivals."""

from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import TensorDataset

IMAGES, CLASSES = 2048, 10


def job() -> SimpleNamespace:
    """The network, its data and its loss."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(1152, 420), nn.ReLU(), nn.Linear(420, CLASSES),
    )  # fmt: skip
    images, labels = torch.randn(IMAGES, 1, 28, 28), torch.randint(0, CLASSES, (IMAGES,))
    return SimpleNamespace(
        model=network,
        train=TensorDataset(images, labels),
        test=TensorDataset(images[:8], labels[:8]),
        loss=nn.functional.cross_entropy,
    )
