"""PyTorch: builds described models natively and keeps them in flat buffers. From torch 1.10 on."""

import platform
import re
from collections import OrderedDict
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from backends import models
from backends.base import Replica, Variable
from backends.models import layers as kinds
from backends.models import user
from backends.models.layers import Model, Shape, label
from backends.models.shapes import sequence

#: Images evaluated at once: enough to keep an accelerator busy, few enough for a small board.
EVALUATION_BATCH = 128


def version():
    # type: () -> str
    """Version of torch."""
    return str(torch.__version__)


def accelerator():
    # type: () -> Tuple[str, str]
    """("cuda", GPU name) or ("cpu", processor name)."""
    if torch.cuda.is_available():
        return "cuda", torch.cuda.get_device_name(0)
    return "cpu", _cpu_name()


def build(model, input_shape=None, classes=None, seed=0, threads=1):
    # type: (Union[str, Model], Optional[Shape], Optional[int], int, int) -> TorchReplica
    """A replica of a model in this process, on its first GPU or else on ``threads`` CPU threads.

    model: a name of ``models.MODELS``, a description, or ``path/to/file.py:function`` where the function
    returns (torch.nn.Module, (height, width, channels)) and the module maps float32 (batch, channels, height,
    width) to (batch, classes). input_shape and classes: of the data; the model's own where None. The same
    seed gives the same weights. Raises ValueError where model and data do not fit, or for what is
    wrong with the user's file.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    if isinstance(model, str) and models.is_user_model(model):
        module, shape, outputs = _user_module(model)
        _agree(model, shape, outputs, input_shape, classes)
        return TorchReplica(module, shape, outputs)
    description = models.model(model, input_shape, classes) if isinstance(model, str) else model
    _agree(description.name, description.input_shape, description.classes, input_shape, classes)
    replica = TorchReplica(
        _sequence(description.layers, description.input_shape), description.input_shape, description.classes
    )
    np.copyto(replica.weights, models.initial_weights(description, seed))
    replica.load()
    return replica


class TorchReplica(Replica):
    """A torch module whose parameters, gradients and state are views into flat tensors.

    input_shape: (height, width, channels) of an image; classes: width of the module's output.
    Frozen parameters and floating-point buffers are state, but for buffers that hold infinities: constants.
    """

    def __init__(self, module, input_shape, classes):
        # type: (nn.Module, Shape, int) -> None
        self.input_shape, self.classes = input_shape, classes
        self.accelerator, _ = accelerator()
        self._device = torch.device(self.accelerator)
        self._module = module.to(self._device).train()
        trained = [(name, value) for name, value in module.named_parameters() if value.requires_grad]
        kept = [(name, value) for name, value in module.named_parameters() if not value.requires_grad]
        kept += [(name, value) for name, value in module.named_buffers() if _changes(value)]
        self._weights, self.variables = _flatten(trained, self._device)
        self._state, self.state_variables = _flatten(kept, self._device)
        self._gradients = torch.zeros_like(self._weights)
        for (_, parameter), place in zip(trained, self.variables):
            parameter.grad = self._gradients[place.start : place.start + place.size].view(place.shape)
        self._velocity = None  # type: Optional[torch.Tensor]
        self._host_weights, self._host_gradients, self._host_state = (
            _host(tensor) for tensor in (self._weights, self._gradients, self._state)
        )
        self.weights = self._host_weights.numpy()
        self.gradients = self._host_gradients.numpy()
        self.state = self._host_state.numpy()
        self._updated = False

    def gradient(self, images, labels, rate=1.0, weight_decay=0.0):
        # type: (np.ndarray, np.ndarray, float, float) -> float
        """See Replica."""
        # Never set to None: autograd adds into these views as long as they are there, so also to the decay.
        if weight_decay:
            torch.mul(self._weights, weight_decay, out=self._gradients)
        else:
            self._gradients.zero_()
        loss = functional.cross_entropy(self._module(self._images(images)), self._labels(labels))
        loss.backward()
        # Scaling the loss instead would save this pass, but half precision or a hook in a user's model would see it.
        self._gradients.mul_(rate)
        value = float(loss.item())
        self._synchronise()
        return value

    def fetch(self):
        # type: () -> None
        """See Replica; weights come too if ``update`` has changed them since."""
        if self.accelerator == "cpu":
            return
        self._host_gradients.copy_(self._gradients, non_blocking=True)
        self._host_state.copy_(self._state, non_blocking=True)
        if self._updated:
            self._host_weights.copy_(self._weights, non_blocking=True)
            self._updated = False
        self._synchronise()

    def load(self):
        # type: () -> None
        """See Replica. Done when it returns: the host buffers may be overwritten."""
        if self.accelerator == "cpu":
            return
        self._weights.copy_(self._host_weights, non_blocking=True)
        self._state.copy_(self._host_state, non_blocking=True)
        self._updated = False
        self._synchronise()

    def update(self, momentum):
        # type: (float) -> None
        """See Replica and Optimiser."""
        velocity = self._momentum().mul_(momentum).add_(self._gradients) if momentum else self._gradients
        self._weights.sub_(velocity)
        self._updated = True
        self._synchronise()

    def evaluate(self, images, labels):
        # type: (np.ndarray, np.ndarray) -> Tuple[float, int]
        """See Replica; EVALUATION_BATCH images at a time."""
        self._module.eval()
        try:
            with torch.no_grad():
                parts = [
                    self._scores(
                        images[start : start + EVALUATION_BATCH], labels[start : start + EVALUATION_BATCH]
                    )
                    for start in range(0, len(images), EVALUATION_BATCH)
                ]
        finally:
            self._module.train()
        return sum(loss for loss, _ in parts), sum(right for _, right in parts)

    def momentum(self):
        # type: () -> np.ndarray
        """See Replica."""
        return self._momentum().cpu().numpy().copy()

    def set_momentum(self, values):
        # type: (np.ndarray) -> None
        """See Replica."""
        self._momentum().copy_(torch.from_numpy(np.array(values, np.float32)))

    def _scores(self, images, labels):
        # type: (np.ndarray, np.ndarray) -> Tuple[float, int]
        scores, truth = self._module(self._images(images)), self._labels(labels)
        loss = functional.cross_entropy(scores, truth, reduction="sum")
        return float(loss.item()), int((scores.argmax(1) == truth).sum().item())

    def _images(self, images):
        # type: (np.ndarray) -> torch.Tensor
        """uint8 (batch, height, width, channels) -> float32 (batch, channels, height, width), -1 to 1."""
        raw = torch.from_numpy(images).to(self._device)
        return raw.permute(0, 3, 1, 2).contiguous().float().mul_(2 / 255.0).sub_(1.0)

    def _labels(self, labels):
        # type: (np.ndarray) -> torch.Tensor
        return torch.from_numpy(labels).to(self._device)

    def _momentum(self):
        # type: () -> torch.Tensor
        # Made when first asked for: a worker whose server updates needs no memory for it.
        if self._velocity is None:
            self._velocity = torch.zeros_like(self._weights)
        return self._velocity

    def _synchronise(self):
        # type: () -> None
        if self.accelerator == "cuda":
            torch.cuda.synchronize(self._device)


def _changes(buffer):
    # type: (torch.Tensor) -> bool
    return buffer.is_floating_point() and bool(torch.isfinite(buffer).all())


def _flatten(named, device):
    # type: (Iterable[Tuple[str, torch.Tensor]], torch.device) -> Tuple[torch.Tensor, Tuple[Variable, ...]]
    """Move tensors into one flat tensor, of which each becomes a view."""
    named = list(named)
    flat = torch.empty(sum(tensor.numel() for _, tensor in named), dtype=torch.float32, device=device)
    places = []  # type: List[Variable]
    start = 0
    for name, tensor in named:
        view = flat[start : start + tensor.numel()].view(tensor.shape)
        view.copy_(tensor.data)
        tensor.data = view
        places.append(Variable(name, tuple(tensor.shape), start, tensor.numel()))
        start += tensor.numel()
    return flat, tuple(places)


def _host(tensor):
    # type: (torch.Tensor) -> torch.Tensor
    """The tensor itself on a CPU; else a page-locked copy, which the GPU reads and writes directly."""
    if tensor.device.type == "cpu":
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor)


def _agree(name, own_shape, own_classes, input_shape, classes):
    # type: (str, Shape, int, Optional[Shape], Optional[int]) -> None
    if input_shape is not None and tuple(input_shape) != own_shape:
        raise ValueError(
            "model %s takes images of %s, the data are %s" % (name, own_shape, tuple(input_shape))
        )
    if classes is not None and own_classes != classes:
        raise ValueError("model %s has %d outputs, the data %d classes" % (name, own_classes, classes))


def _user_module(model):
    # type: (str) -> Tuple[nn.Module, Shape, int]
    """What the user's function returns, checked with one black image: module, input shape, classes."""
    result = user.load(model)()
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], nn.Module)):
        raise ValueError(
            "model %r returned %s; it must return (torch.nn.Module, (height, width, channels))"
            % (model, type(result).__name__)
        )
    module, shape = result[0], tuple(result[1])
    if len(shape) != 3 or not all(isinstance(length, int) and length > 0 for length in shape):
        raise ValueError(
            "model %r returned input shape %s; it must be (height, width, channels)" % (model, shape)
        )
    height, width, channels = shape
    module.float().eval()
    with torch.no_grad():
        output = module(torch.zeros(1, channels, height, width))
    if not isinstance(output, torch.Tensor) or output.dim() != 2:
        raise ValueError(
            "model %r: the module's output must be (batch, classes), is %s"
            % (model, tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__)
        )
    return module, shape, int(output.shape[1])


class _Residual(nn.Module):
    """layers.Residual"""

    def __init__(self, branch, shortcut):
        # type: (nn.Module, nn.Module) -> None
        super().__init__()
        self.branch, self.shortcut = branch, shortcut

    def forward(self, x):
        # type: (torch.Tensor) -> torch.Tensor
        return self.branch(x) + self.shortcut(x)


class _Concat(nn.ModuleList):
    """layers.Concat"""

    def forward(self, x):
        # type: (torch.Tensor) -> torch.Tensor
        return torch.cat([branch(x) for branch in self], 1)


class _ResponseNorm(nn.Module):
    """layers.LocalResponseNorm, its sums as a 1x1 convolution: four times as fast as torch's own on a CPU."""

    def __init__(self, layer, channels):
        # type: (kinds.LocalResponseNorm, int) -> None
        super().__init__()
        self.scale, self.exponent, self.bias = layer.scale, layer.exponent, layer.bias
        index = torch.arange(channels)
        # Boolean, because floating-point buffers are state.
        self.register_buffer("near", (index[:, None] - index[None, :]).abs() <= layer.size // 2)

    def forward(self, x):
        # type: (torch.Tensor) -> torch.Tensor
        sums = functional.conv2d(x * x, self.near.to(x.dtype)[:, :, None, None])
        return x * (self.bias + self.scale * sums).pow(-self.exponent)


class _Subsample(nn.Module):
    """layers.Subsample"""

    def __init__(self, stride, missing):
        # type: (int, int) -> None
        super().__init__()
        self.stride, self.missing = stride, missing

    def forward(self, x):
        # type: (torch.Tensor) -> torch.Tensor
        return functional.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.missing))


def _sequence(layers, shape):
    # type: (Tuple[Any, ...], Shape) -> nn.Sequential
    """The layers as torch modules under the names that the description gives them."""
    modules = OrderedDict()  # type: OrderedDict[str, nn.Module]
    for index, layer in enumerate(layers):
        modules[label(index, layer)] = _MODULES[type(layer)](layer, shape)
        shape = sequence((layer,), shape).output
    return nn.Sequential(modules)


def _convolution(layer, shape):
    # type: (kinds.Conv, Shape) -> nn.Module
    return nn.Conv2d(shape[2], layer.channels, layer.kernel, layer.stride, layer.padding, bias=layer.bias)


def _depthwise(layer, shape):
    # type: (kinds.Depthwise, Shape) -> nn.Module
    channels = shape[2]
    return nn.Conv2d(
        channels, channels, layer.kernel, layer.stride, layer.padding, groups=channels, bias=False
    )


_MODULES = {
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
    kinds.Residual: lambda layer, shape: _Residual(
        _sequence(layer.branch, shape), _sequence(layer.shortcut, shape)
    ),
    kinds.Concat: lambda layer, shape: _Concat([_sequence(branch, shape) for branch in layer.branches]),
}  # type: Dict[type, Callable[[Any, Shape], nn.Module]]


def _cpu_name():
    # type: () -> str
    try:
        with open("/proc/cpuinfo") as info:
            found = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", info.read(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1) if found else platform.processor() or platform.machine()
