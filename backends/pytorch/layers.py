"""This module builds torch modules from described layers."""

from collections import OrderedDict
from typing import Any, Callable, Dict, Tuple

import torch
from torch import nn
from torch.nn import functional

from backends.models import layers as kinds
from backends.models.layers import Shape, label
from backends.models.shapes import sequence


class _Residual(nn.Module):
    """A residual block, see layers.Residual."""

    def __init__(self, branch: nn.Module, shortcut: nn.Module) -> None:
        super().__init__()
        self.branch, self.shortcut = branch, shortcut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total: torch.Tensor = self.branch(x) + self.shortcut(x)
        return total


class _Concat(nn.ModuleList):
    """Parallel branches, see layers.Concat."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self], 1)


class _ResponseNorm(nn.Module):
    """Local response normalisation, see layers.LocalResponseNorm.

    The sums are computed by a 1x1 convolution, four times as fast on a CPU as torch's own.
    """

    def __init__(self, layer: kinds.LocalResponseNorm, channels: int) -> None:
        super().__init__()
        self.scale, self.exponent, self.bias = layer.scale, layer.exponent, layer.bias
        index = torch.arange(channels)
        # Boolean, because floating-point buffers are state.
        self.near: torch.Tensor
        near = (index[:, None] - index[None, :]).abs() <= layer.size // 2
        self.register_buffer("near", near, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sums = functional.conv2d(x * x, self.near.to(x.dtype)[:, :, None, None])
        return x * (self.bias + self.scale * sums).pow(-self.exponent)


class _Subsample(nn.Module):
    """A shortcut without parameters, see layers.Subsample."""

    def __init__(self, stride: int, missing: int) -> None:
        super().__init__()
        self.stride, self.missing = stride, missing

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # What functional.pad would put into an exported file is unknown to torch before 1.12.
        return torch.constant_pad_nd(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.missing))


def build(layers: Tuple[Any, ...], shape: Shape) -> nn.Sequential:
    """The layers as torch modules, under the names that the description gives them.

    shape: (height, width, channels) of the input of the first layer.
    """
    modules: "OrderedDict[str, nn.Module]" = OrderedDict()
    for index, layer in enumerate(layers):
        modules[label(index, layer)] = _MODULES[type(layer)](layer, shape)
        shape = sequence((layer,), shape).output
    return nn.Sequential(modules)


def _convolution(layer: kinds.Conv, shape: Shape) -> nn.Module:
    return nn.Conv2d(shape[2], layer.channels, layer.kernel, layer.stride, layer.padding, bias=layer.bias)


def _depthwise(layer: kinds.Depthwise, shape: Shape) -> nn.Module:
    channels = shape[2]
    return nn.Conv2d(channels, channels, layer.kernel, layer.stride, layer.padding, groups=channels, bias=False)


_MODULES: Dict[type, Callable[[Any, Shape], nn.Module]] = {
    kinds.Conv: _convolution,
    kinds.Depthwise: _depthwise,
    kinds.BatchNorm: lambda layer, shape: nn.BatchNorm2d(shape[2], layer.epsilon, layer.momentum),
    kinds.LocalResponseNorm: lambda layer, shape: _ResponseNorm(layer, shape[2]),
    kinds.Relu: lambda layer, shape: nn.ReLU(inplace=True),
    kinds.MaxPool: lambda layer, shape: nn.MaxPool2d(layer.window, layer.stride, layer.padding),
    kinds.AveragePool: lambda layer, shape: nn.AvgPool2d(
        layer.window, layer.stride, layer.padding, count_include_pad=False
    ),
    kinds.GlobalAveragePool: lambda layer, shape: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    kinds.Flatten: lambda layer, shape: nn.Flatten(),
    kinds.Dense: lambda layer, shape: nn.Linear(shape[0], layer.units),
    kinds.Dropout: lambda layer, shape: nn.Dropout(layer.rate),
    kinds.Subsample: lambda layer, shape: _Subsample(layer.stride, layer.channels - shape[2]),
    kinds.Residual: lambda layer, shape: _Residual(build(layer.branch, shape), build(layer.shortcut, shape)),
    kinds.Concat: lambda layer, shape: _Concat([build(branch, shape) for branch in layer.branches]),
}
