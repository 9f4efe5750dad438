"""A torch model of the user's own."""

from typing import Tuple

import torch
from torch import nn

from backends.models import user
from backends.models.layers import Shape


def build(model):
    # type: (str) -> Tuple[nn.Module, Shape, int]
    """What the user's function returns, checked with one black image: module, input shape, classes.

    model: ``path/to/file.py:function``. Raises ValueError for what does not fit.
    """
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
