"""A regression on a table in PyTorch, with an optimizer and a scheduler of its own."""

from types import SimpleNamespace

import torch
from table import table
from torch import nn
from torch.utils.data import TensorDataset


def job():
    """A small network; its error is told as the root of the mean square."""
    train, test = (TensorDataset(*map(torch.from_numpy, table(rows, seed))) for rows, seed in ((8000, 1), (2000, 2)))
    return SimpleNamespace(
        model=nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)),
        train=train,
        test=test,
        loss=nn.functional.mse_loss,
        metrics={"rmse": lambda outputs, targets: (outputs - targets).square().mean().sqrt()},
        optimizer=lambda parameters: torch.optim.Adam(parameters, lr=0.003),
        scheduler=lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9995),
    )
