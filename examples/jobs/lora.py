"""Low-rank adapters (LoRA) for the network of regression.py, whose own weights stay as they are.

With base.pth here (`planner export runs/RUN --to base.pth`) they adapt that run's network. Only the
adapters are exchanged, have gradients and optimizer states, and are trained.
"""

import os

import torch
from regression import job as regression
from torch import nn

RANK = 4


class Adapted(nn.Module):
    """A frozen linear layer, and the product of two small matrices that is added to it."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(RANK, layer.in_features) / layer.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(layer.out_features, RANK))

    def forward(self, x):
        return self.layer(x) + x @ self.down.t() @ self.up.t()


def job():
    """As regression.py, with adapters."""
    found = regression()
    if os.path.exists("base.pth"):
        found.model.load_state_dict(torch.load("base.pth"))
    found.model = nn.Sequential(*[Adapted(each) if isinstance(each, nn.Linear) else each for each in found.model])
    return found
