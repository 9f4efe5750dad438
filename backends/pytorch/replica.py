"""A PyTorch replica keeps parameters, gradients and state as views into flat tensors."""

from typing import Any, Callable, Optional, Tuple

import numpy as np
import torch

from backends.frameworks.device import CPU, CUDA, MPS
from backends.frameworks.layout import Variable, consecutive
from backends.frameworks.optimizer import OWN, OptimizerSettings, Slots
from backends.jobs.job import Job
from backends.pytorch import accelerators
from backends.pytorch.held_buffers import HeldBuffers, Named, changing_buffers
from backends.pytorch.mixed_precision import LossScale, require
from backends.pytorch.module_replica import ModuleReplica, frozen, trained
from backends.pytorch.ready_shares import ready_shares
from backends.pytorch.updates import FlatUpdate
from profilers.mixed_precision import FP16


class TorchReplica(ModuleReplica):
    """A torch module whose parameters, gradients and state are views into flat tensors.

    State holds frozen parameters and floating-point buffers; those with infinities are constants.
    training_loss: what gradients are taken of, ``loss`` or a module around it.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        module = accelerators.placed_module(job.model, self.accelerator).train()
        named = trained(module)
        self._trained = [value for _, value in named]
        self._weights, self.variables = flatten(named, self._device)
        held = frozen(module)
        self._state, self.state_variables = flatten(held + changing_buffers(module), self._device)
        self._buffers = HeldBuffers(module)
        self.frozen = sum(value.numel() for _, value in held)
        self._gradients = torch.zeros_like(self._weights)
        for (_, parameter), place in zip(named, self.variables):
            parameter.grad = self._gradients[place.part].view(place.shape)
        self.training_loss: Callable[[Any], torch.Tensor] = self.loss
        self._update = FlatUpdate(self._weights)
        self._host_weights, self._host_gradients, self._host_state = (
            _host(tensor) for tensor in (self._weights, self._gradients, self._state)
        )
        self.weights = self._host_weights.numpy()
        self.gradients = self._host_gradients.numpy()
        self.state = self._host_state.numpy()
        self._updated = False
        self._loss_scale: Optional[LossScale] = None

    def compute_in(self, precision: str) -> None:
        require(precision, self.accelerator)
        self._precision = precision
        self._loss_scale = LossScale(self._gradients) if precision == FP16 else None

    def gradient(self, batch: Any, rate: float = 1.0, weight_decay: float = 0.0, adds: bool = False) -> float:
        self._carried.begin(adds)
        if self._loss_scale is not None:
            return self._scaled_gradient(self._loss_scale, batch, rate, weight_decay, adds)
        # Gradients are never set to None: autograd adds to these views, which already hold the
        # weight decay.
        if weight_decay:
            torch.mul(self._weights, weight_decay, out=self._gradients)
        elif not adds:
            self._gradients.zero_()
        loss = self.training_loss(batch)
        if adds:
            (rate * loss).backward()
        else:
            loss.backward()
            # Scaling the loss would save this pass, but would be visible to half precision and to
            # hooks in a user's model.
            self._gradients.mul_(rate)
        self._buffers.take()
        value = float(loss.item())
        self._synchronise()
        return value

    def _scaled_gradient(
        self, loss_scale: LossScale, batch: Any, rate: float, weight_decay: float, adds: bool
    ) -> float:
        """``gradient`` in float16. One that overflows is computed again with a smaller scale.

        So every step is made, as the members of a cluster expect.
        """
        before = self._gradients.clone() if adds else None
        while True:
            self._gradients.zero_()
            loss = self.training_loss(batch)
            loss_scale.scaled(loss).backward()
            if loss_scale.unscale():
                break
        if weight_decay:
            self._gradients.add_(self._weights, alpha=weight_decay)
        self._gradients.mul_(rate)
        if before is not None:
            self._gradients.add_(before)
        self._buffers.take()
        value = float(loss.item())
        self._synchronise()
        return value

    def ready_shares(self, compute: Callable[[], Any]) -> Optional[np.ndarray]:
        if self.accelerator == MPS:  # which torch.distributed does not serve
            return None
        return ready_shares(self._trained, compute, self.accelerator == CUDA)

    def gradient_norm(self) -> float:
        return float(torch.norm(self._gradients).item())

    def rescale(self, factor: float, decay: float) -> None:
        self._gradients.mul_(factor)
        if decay:
            self._gradients.add_(self._weights, alpha=decay)
        self._synchronise()

    def fetch(self) -> None:
        if self.accelerator == CPU:
            return
        self._copy(self._gradients, self._host_gradients)
        self._copy(self._state[self.frozen :], self._host_state[self.frozen :])
        if self._updated:
            self._copy(self._weights, self._host_weights)
            self._updated = False
        self._synchronise()

    def weights_changed(self) -> None:
        """The accelerator's weights were written, not by ``update``; ``fetch`` copies them."""
        self._updated = True

    def _copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Between host and GPU; the host does not wait where its memory is page-locked."""
        target.copy_(source, non_blocking=self.accelerator == CUDA)

    def load(self) -> None:
        """The host buffers may be overwritten as soon as it returns."""
        if self.accelerator == CPU:
            return
        self._copy(self._host_weights, self._weights)
        self._copy(self._host_state[self.frozen :], self._state[self.frozen :])
        self._updated = False
        self._synchronise()

    def load_frozen(self) -> None:
        self._state[: self.frozen].copy_(self._host_state[: self.frozen])

    def keep_state(self) -> None:
        """On the device that computes, for a step takes longer than that."""
        self._kept_state = self._state[self.frozen :].clone()

    def kept_state(self) -> np.ndarray:
        kept: np.ndarray = self._kept_state.cpu().numpy()
        return kept

    def update(self, optimizer: OptimizerSettings) -> None:
        if optimizer.kind == OWN:
            self._own_optimizer().step()
        else:
            self._update(optimizer, self._gradients)
        self._updated = True
        self._synchronise()

    def slots(self, kind: str) -> Slots:
        return self._update.slots(kind)

    def set_slots(self, slots: Slots) -> None:
        self._update.set_slots(slots)

    def own_step(self, weights: np.ndarray, gradients: np.ndarray) -> None:
        self._weights.copy_(torch.from_numpy(weights))
        self._gradients.copy_(torch.from_numpy(gradients))
        self._own_optimizer().step()
        weights[:] = self._weights.cpu().numpy()


def flatten(named: Named, device: torch.device) -> Tuple[torch.Tensor, Tuple[Variable, ...]]:
    """Move tensors into one flat tensor; each becomes a view of it."""
    flat = torch.empty(sum(tensor.numel() for _, tensor in named), dtype=torch.float32, device=device)
    variables = consecutive((name, tensor.shape) for name, tensor in named)
    for (_, tensor), variable in zip(named, variables):
        view = flat[variable.part].view(tensor.shape)
        view.copy_(tensor.data)
        tensor.data = view
    return flat, variables


def _host(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself on a CPU; else a copy, page-locked where a GPU can access that directly."""
    if tensor.device.type == CPU:
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=tensor.is_cuda).copy_(tensor)
