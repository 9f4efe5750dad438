"""Models of the zoo, written once more in plain torch, to compare replicas with them."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional


def as_input(images):
    return torch.from_numpy(images.transpose(0, 3, 1, 2).astype(np.float32)).mul(2 / 255).sub(1)


class Cifar10(nn.Module):
    """For 32x32x3."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 64, 5, padding=2), nn.Conv2d(64, 64, 5, padding=2)
        self.three, self.four, self.five = nn.Linear(4096, 384), nn.Linear(384, 192), nn.Linear(192, 10)
        self.norm = nn.LocalResponseNorm(9, 0.001, 0.75, 1.0)

    def forward(self, x):
        x = self.norm(functional.max_pool2d(self.one(x).relu(), 3, 2, 1))
        x = functional.max_pool2d(self.norm(self.two(x).relu()), 3, 2, 1)
        return self.five(self.four(self.three(x.flatten(1)).relu()).relu())


class Block(nn.Module):
    """A residual block of ResNet-20."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.stride = 1 if inputs == outputs else 2
        self.one = nn.Conv2d(inputs, outputs, 3, self.stride, 1, bias=False)
        self.norm_one = nn.BatchNorm2d(outputs)
        self.two = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm_two = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.norm_two(self.two(self.norm_one(self.one(x)).relu()))
        if self.stride == 2:
            x = torch.cat([x[:, :, ::2, ::2], torch.zeros_like(y[:, x.shape[1] :])], 1)
        return (x + y).relu()


def resnet():
    widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
    blocks = [Block(inputs, outputs) for inputs, outputs in zip(widths, widths[1:], strict=False)]
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        *blocks,
        nn.AvgPool2d(8),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def with_weights_of(replica, name):
    """The model of this name with the replica's weights."""
    module = {"cifar10": Cifar10, "resnet": resnet}[name]()
    for parameter, place in zip(module.parameters(), replica.variables, strict=True):
        values = replica.weights[place.start : place.start + place.size].reshape(place.shape)
        parameter.data = torch.from_numpy(values.copy())
    return module


def flat(tensors):
    return np.concatenate([tensor.detach().numpy().ravel() for tensor in tensors])
