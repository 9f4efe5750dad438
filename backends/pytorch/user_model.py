"""This module builds and checks a user's own torch model."""

from typing import Tuple

import torch
from torch import nn

from backends.models import user
from backends.models.layers import Shape


def build(model: str) -> Tuple[nn.Module, Shape, int]:
    """Build the user's module and check it with one black image: module, input shape, classes.

    model: ``path/to/file.py:function``.
    Raises ValueError for a module or an output of the wrong form.
    """
    module, shape = user.returned(model, "torch.nn.Module", lambda result: isinstance(result, nn.Module))
    height, width, channels = shape
    module.float().eval()
    with torch.no_grad():
        output = module(torch.zeros(1, channels, height, width))
    return module, shape, user.outputs(model, output)
