"""The same regression for torch: what it is given is -1 to 1, what it computes with is 0 to 1."""

import time
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.backends.fakes import images
from tests.chaos.job import SHAPE, STEP_S, fail, write_journal


class Journalled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(12, 3)
        self.steps = self.evaluations = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x: (batch, 3, 2, 2)."""
        inputs = (x + 1) / 2
        if self.training:
            self.steps += 1
            time.sleep(STEP_S)
            fail("step", self.steps)
            self._write(inputs)
        else:
            fail("evaluation", self.steps, self.evaluations)
            self.evaluations += 1
        return self.dense(inputs.permute(0, 2, 3, 1).flatten(1))

    def _write(self, inputs: torch.Tensor) -> None:
        with torch.no_grad():
            weights = torch.cat([self.dense.weight.t().flatten(), self.dense.bias])
            pixels = (inputs * 255).round().to(torch.uint8).permute(0, 2, 3, 1).flatten(1)
        write_journal(weights.numpy(), pixels.contiguous().numpy())


def in_torch() -> tuple[Journalled, tuple[int, int, int]]:
    return Journalled(), SHAPE


class Samples:
    """Images as a job reads them one by one: float32 (3, 2, 2) of -1 to 1, and a label."""

    def __init__(self, count: int, seed: int) -> None:
        pixels, self.labels = images(count, seed)
        self.images = pixels.transpose(0, 3, 1, 2).astype(np.float32) * np.float32(2 / 255) - 1
        self._read = 0

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, place: int) -> tuple[Any, int]:
        self._read += 1
        fail("data", self._read)
        return torch.from_numpy(self.images[place]), int(self.labels[place])
