"""The native update of one device, on flat tensors.

torch.optim would import as much again as torch itself at its first use, seconds on a small board.
"""

from typing import Dict

import numpy as np
import torch

from backends.frameworks.optimizer import (
    FIRST_MOMENT,
    MOMENTUM,
    SECOND_MOMENT,
    SGD,
    NativeUpdate,
    OptimizerSettings,
    factors,
)

#: Elements that Adam handles at once on a processor, so that a block stays in its cache.
BLOCK = 1 << 17


class FlatUpdate(NativeUpdate):
    """SGD with momentum, or Adam, on tensors of weights and gradients, of any shape."""

    def __init__(self, weights: torch.Tensor) -> None:
        self._weights = weights
        self._slots: Dict[str, torch.Tensor] = {}

    def __call__(self, optimizer: OptimizerSettings, gradients: torch.Tensor) -> None:
        """One step with these gradients."""
        if optimizer.kind != SGD:
            self._adam(optimizer, gradients)
        elif optimizer.momentum:
            self._weights.sub_(self.slot(MOMENTUM).mul_(optimizer.momentum).add_(gradients))
        else:
            self._weights.sub_(gradients)

    def _adam(self, optimizer: OptimizerSettings, gradients: torch.Tensor) -> None:
        """As ``backends.optimizers.adam``; on a GPU as one block."""
        self.updates += 1
        made = factors(optimizer, self.updates)
        held = (self._weights, gradients, self.slot(FIRST_MOMENT), self.slot(SECOND_MOMENT))
        flat = [tensor.view(-1) for tensor in held]
        size = self._weights.numel()
        block = BLOCK if self._weights.device.type == "cpu" else size
        for start in range(0, size, max(1, block)):
            w, g, m, v = (tensor[start : start + block] for tensor in flat)
            if made.decay:
                g.add_(w, alpha=made.decay)
            if made.shrink != 1.0:
                w.mul_(made.shrink)
            m.mul_(optimizer.beta1).add_(g, alpha=1.0 - optimizer.beta1)
            v.mul_(optimizer.beta2).addcmul_(g, g, value=1.0 - optimizer.beta2)
            w.addcdiv_(m, v.sqrt().add_(made.epsilon), value=-made.step)

    def slot(self, name: str) -> torch.Tensor:
        """What is kept under a name, of the weights' shape; made on its first use."""
        if name not in self._slots:
            self._slots[name] = torch.zeros_like(self._weights)
        return self._slots[name]

    def _read(self, name: str) -> np.ndarray:
        copied: np.ndarray = self.slot(name).cpu().clone().numpy()
        return copied

    def _write(self, name: str, values: np.ndarray) -> None:
        self.slot(name).copy_(torch.from_numpy(values))
