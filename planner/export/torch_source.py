"""A known model as a Python file of plain torch, for who loads its weights from safetensors."""

from collections.abc import Callable
from typing import Any

from backends.models import Model
from backends.models import layers as kinds
from backends.models.layers import Shape, label
from backends.models.shapes import sequence
from planner.agents.exported import MARK

_HEAD = """\"\"\"{mark} for {weights}: {model}, {source}.

Network() maps images, {images}, to
probabilities, float32 (batch, {classes}). The names of its arrays are those of {weights}.
\"\"\"

from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional


def named(*layers):
    return nn.Sequential(OrderedDict(layers))

"""

_HELPERS = {
    "Residual": """
class Residual(nn.Module):
    def __init__(self, branch, shortcut):
        super().__init__()
        self.branch, self.shortcut = branch, shortcut

    def forward(self, x):
        return self.branch(x) + self.shortcut(x)

""",
    "Concat": """
class Concat(nn.ModuleList):
    def forward(self, x):
        return torch.cat([branch(x) for branch in self], 1)

""",
    "Subsample": """
class Subsample(nn.Module):
    def __init__(self, stride, missing):
        super().__init__()
        self.stride, self.missing = stride, missing

    def forward(self, x):
        return functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.missing))

""",
}

_NETWORK = """
class Network(nn.Sequential):
    def __init__(self):
        super().__init__(OrderedDict([{layers}]))

    def forward(self, images):
        planes = images.permute(0, 3, 1, 2).contiguous().float(){scaling}
        return functional.softmax(super().forward(planes), 1)
"""


def torch_source(model: Model, dtype: str, weights: str) -> str:
    """The file's text.

    dtype: of the data set's images. weights: the name of the file of weights that it belongs to.
    """
    shape = "(batch, {}, {}, {})".format(*model.input_shape)
    is_bytes = dtype == "uint8"
    images = f"uint8 or float {shape} of 0 to 255" if is_bytes else f"float {shape} as trained on"
    head = _HEAD.format(
        mark=MARK.decode(), weights=weights, model=model.name, source=model.source,
        images=images, classes=model.classes,
    )  # fmt: skip
    layers = _layers(model.layers, model.input_shape, 12) + "\n        "
    network = _NETWORK.format(layers=layers, scaling=" * (2 / 255.0) - 1.0" if is_bytes else "")
    helpers = (text for name, text in _HELPERS.items() if f" {name}(" in network)
    return "".join([head, *helpers, network])


def _layers(layers: tuple[Any, ...], shape: Shape, indent: int) -> str:
    """Pairs of name and module, a line each, at this indentation."""
    lines = []
    for index, layer in enumerate(layers):
        lines.append(f"\n{' ' * indent}({label(index, layer)!r}, {_MODULES[type(layer)](layer, shape, indent)}),")
        shape = sequence((layer,), shape).output
    return "".join(lines)


def _named(layers: tuple[Any, ...], shape: Shape, indent: int) -> str:
    return f"named({_layers(layers, shape, indent + 4)}\n{' ' * indent})" if layers else "named()"


def _conv(layer: kinds.Conv, shape: Shape, indent: int) -> str:
    sizes = f"{shape[2]}, {layer.channels}, {layer.kernel}, {layer.stride}, {layer.padding}"
    return f"nn.Conv2d({sizes}, bias={layer.bias})"


def _depthwise(layer: kinds.Depthwise, shape: Shape, indent: int) -> str:
    sizes = f"{shape[2]}, {shape[2]}, {layer.kernel}, {layer.stride}, {layer.padding}"
    return f"nn.Conv2d({sizes}, groups={shape[2]}, bias=False)"


def _response_norm(layer: kinds.LocalResponseNorm, shape: Shape, indent: int) -> str:
    neighbours = 2 * (layer.size // 2) + 1
    alpha = layer.scale * neighbours  # torch divides it by their number
    return f"nn.LocalResponseNorm({neighbours}, {alpha!r}, {layer.exponent!r}, {layer.bias!r})"


def _residual(layer: kinds.Residual, shape: Shape, indent: int) -> str:
    inner = indent + 4
    branch, shortcut = (_named(part, shape, inner) for part in (layer.branch, layer.shortcut))
    return f"Residual(\n{' ' * inner}{branch},\n{' ' * inner}{shortcut},\n{' ' * indent})"


def _concat(layer: kinds.Concat, shape: Shape, indent: int) -> str:
    inner = indent + 4
    branches = "".join(f"\n{' ' * inner}{_named(branch, shape, inner)}," for branch in layer.branches)
    return f"Concat([{branches}\n{' ' * indent}])"


_MODULES: dict[type, Callable[[Any, Shape, int], str]] = {
    kinds.Conv: _conv,
    kinds.Depthwise: _depthwise,
    kinds.BatchNorm: lambda layer, shape, indent: f"nn.BatchNorm2d({shape[2]}, {layer.epsilon!r}, {layer.momentum!r})",
    kinds.LocalResponseNorm: _response_norm,
    kinds.Relu: lambda layer, shape, indent: "nn.ReLU()",
    kinds.MaxPool: lambda layer, shape, indent: f"nn.MaxPool2d({layer.window}, {layer.stride}, {layer.padding})",
    kinds.AveragePool: lambda layer, shape, indent: (
        f"nn.AvgPool2d({layer.window}, {layer.stride}, {layer.padding}, count_include_pad=False)"
    ),
    kinds.GlobalAveragePool: lambda layer, shape, indent: "nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())",
    kinds.Flatten: lambda layer, shape, indent: "nn.Flatten()",
    kinds.Dense: lambda layer, shape, indent: f"nn.Linear({shape[0]}, {layer.units})",
    kinds.Dropout: lambda layer, shape, indent: f"nn.Dropout({layer.rate!r})",
    kinds.Subsample: lambda layer, shape, indent: f"Subsample({layer.stride}, {layer.channels - shape[2]})",
    kinds.Residual: _residual,
    kinds.Concat: _concat,
}
