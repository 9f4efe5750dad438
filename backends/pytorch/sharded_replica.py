"""A sharded replica holds one member's shares of a model; blocks are gathered as they compute.

FSDP2 (torch.distributed.fsdp.fully_shard) divides each parameter by its rows, and with it the
gradient and what an optimizer keeps. This module is loaded where torch has it only.
"""

import itertools
from typing import Any, Callable, Dict, Iterable, Iterator, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

from backends.frameworks.array_files import on_disk
from backends.frameworks.layout import Variable, consecutive
from backends.frameworks.model_share import ModelShare
from backends.frameworks.optimizer import SLOT_NAMES, UPDATES, OptimizerSettings, Slots
from backends.jobs.failure import refusal
from backends.jobs.job import Job
from backends.pytorch.blocks import blocks_of
from backends.pytorch.held_buffers import HeldBuffers, changing_buffers
from backends.pytorch.mixed_precision import require
from backends.pytorch.module_replica import ModuleReplica, frozen, trained
from backends.pytorch.replica import flatten
from backends.pytorch.shard_exchange import ExchangeClock, GatherShares, MeanOfShares
from backends.pytorch.share_transfer import ShareTransfer
from backends.pytorch.updates import FlatUpdate
from profilers.process_memory import return_large_arrays

#: Parts of torch's messages where a share is used as if it were the whole parameter.
OUTSIDE = ("mixed torch.Tensor and DTensor", "setStorage")
USED_OUTSIDE = (
    "shard=full gathers a block's parameters while its forward runs, and the model uses some of them outside of it, or "
    "in what the forward gives, which is to be tensors in tuples, lists or dicts; name blocks in the job that it calls "
    "(blocks=[...]), or leave shard=full out"
)


class ShardedReplica(ModuleReplica, ModelShare):
    """A share of a torch module, which is whole, and on the host, until ``divide``.

    factor: of this member's gradients, before their mean over the members is taken.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        return_large_arrays()
        self.module.cpu().train()
        named = trained(self.module)
        held = frozen(self.module)
        self.variables = consecutive((name, each.shape) for name, each in named)
        self.state_variables = consecutive((name, each.shape) for name, each in held + changing_buffers(self.module))
        for name, each in named + held:
            if not each.dim():
                raise refusal(
                    "its model's parameter %s has no dimension, and shard=full divides parameters by their first; "
                    "give it the shape (1,), or leave shard=full out" % name
                )
        self._root = _Root(self.module)
        self.factor = 1.0

    def divide(self, mesh: DeviceMesh, transfer: ShareTransfer, clock: Optional[ExchangeClock]) -> None:
        """Keep this member's shares of the first member's arrays.

        clock: of the exchange over gloo; None for torch's own exchange, on GPUs.
        """
        for each in (*self.module.parameters(), *(buffer for _, buffer in changing_buffers(self.module))):
            each.data = each.data.contiguous()
            transfer.broadcast(each.data)
        for module in (*blocks_of(self.module, self._job.blocks), self._root):
            made: Any = fully_shard(module, mesh=mesh)
            if clock is not None:
                made.set_custom_all_gather(GatherShares(clock))
                made.set_custom_reduce_scatter(MeanOfShares(clock))
        self._transfer = transfer
        # While a block is gathered, the module has others in their places.
        self._trained = [each for _, each in trained(self.module)]
        self._frozen = [each for _, each in frozen(self.module)]
        self._updates = [FlatUpdate(_share(each)) for each in self._trained]
        self._state, _ = flatten(changing_buffers(self.module), self._device)
        self._buffers = HeldBuffers(self.module)
        self._host_state = self._state.cpu()
        self.state = self._host_state.numpy()

    def compute_in(self, precision: str) -> None:
        require(precision, self.accelerator)
        self._precision = precision

    def gradient(self, batch: Any, rate: float = 1.0, weight_decay: float = 0.0, adds: bool = False) -> float:
        """Together with all other members; the gradients at hand are shares of the mean."""
        self._carried.begin(adds)
        if not adds:
            for each in self._trained:
                each.grad = None
        try:
            loss = self._root(self.loss, batch)
            (self.factor * rate * loss).backward()
        except RuntimeError as error:
            if any(part in str(error) for part in OUTSIDE):
                raise refusal(USED_OUTSIDE) from error
            raise
        self._buffers.take()
        if weight_decay:
            self.rescale(1.0, rate * weight_decay)
        return float(loss.item())

    def gradient_norm(self) -> float:
        squares = sum((float(each.square().sum()) for each in self._gradients()), 0.0)
        return float(self._transfer.total(squares) ** 0.5)

    def rescale(self, factor: float, decay: float) -> None:
        for parameter, gradient in zip(self._trained, self._gradients()):
            gradient.mul_(factor)
            if decay:
                gradient.add_(_share(parameter), alpha=decay)

    def _gradients(self) -> Iterator[torch.Tensor]:
        for each in self._trained:
            if each.grad is None:  # no member's loss depends on it
                each.grad = torch.zeros_like(each)
            yield _share(each.grad)

    def update(self, optimizer: OptimizerSettings) -> None:
        for update, gradient in zip(self._updates, self._gradients()):
            update(optimizer, gradient)
        self._synchronise()

    def evaluate(self, batch: Any) -> Tuple[float, Dict[str, float]]:
        try:
            return super().evaluate(batch)
        finally:
            self._root.reshard()  # which FSDP2 leaves to the backward pass

    def _scores(self, batch: Any) -> Tuple[float, Dict[str, float]]:
        found: Tuple[float, Dict[str, float]] = self._root(super()._scores, batch)
        return found

    def fetch(self) -> None:
        self._host_state.copy_(self._state)

    def load(self) -> None:
        self._state.copy_(self._host_state)

    def whole_weights(self) -> np.ndarray:
        return self._joined(self._collected(map(_share, self._trained), self.variables))

    def whole_state(self) -> np.ndarray:
        own = () if self._transfer.rank else (self.state,)
        return self._joined(itertools.chain(self._collected(map(_share, self._frozen), self.state_variables), own))

    def set_whole(self, weights: np.ndarray, state: np.ndarray) -> None:
        self._distribute(weights, map(_share, self._trained), self.variables)
        self._distribute(state, map(_share, self._frozen), self.state_variables)
        if not self._transfer.rank:
            self.state[:] = state[state.size - self.state.size :]
        self._transfer.broadcast(self._host_state)
        self.load()

    def slots(self, kind: str) -> Slots:
        return {
            name: np.full(1, self._updates[0].updates, np.float32)
            if name == UPDATES
            else self._joined(self._collected((each.slot(name) for each in self._updates), self.variables))
            for name in SLOT_NAMES[kind]
        }

    def set_slots(self, slots: Slots) -> None:
        for name, values in slots.items():
            if name == UPDATES:
                made = int(self._transfer.total(0.0 if self._transfer.rank else float(values[0])))
                for each in self._updates:
                    each.updates = made
            else:
                self._distribute(values, (each.slot(name) for each in self._updates), self.variables)

    def _collected(self, shares: Iterable[torch.Tensor], variables: Sequence[Variable]) -> Iterator[np.ndarray]:
        return (self._transfer.collect(share, variable) for share, variable in zip(shares, variables))

    def _distribute(self, whole: np.ndarray, shares: Iterable[torch.Tensor], variables: Sequence[Variable]) -> None:
        for share, variable in zip(shares, variables):
            self._transfer.distribute(whole, share, variable)

    def _joined(self, arrays: Iterable[np.ndarray]) -> np.ndarray:
        return on_disk(arrays, self.folder)


class _Root(nn.Module):
    """A forward pass of whatever is computed with a module, for FSDP2 sees forward passes only."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, compute: Callable[[Any], Any], batch: Any) -> Any:
        return compute(batch)


def _share(whole: Any) -> torch.Tensor:
    """This member's rows of a distributed tensor; writing to them changes it."""
    found: torch.Tensor = whole.detach().to_local()
    return found
