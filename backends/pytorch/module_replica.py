"""Every replica of a torch module computes the job's loss and metrics, and has its optimizer."""

from typing import Any, Dict, List, Optional, Tuple

import torch

from backends.frameworks.base import NO_GRADIENT, Replica
from backends.jobs.carried_state import CarriedState
from backends.jobs.failure import refusal
from backends.jobs.job import Job
from backends.jobs.kept_outputs import KeptOutputs
from backends.pytorch import accelerators
from backends.pytorch.blocks import blocks_of, elements
from backends.pytorch.checkpointing import CheckpointedBlocks
from backends.pytorch.held_buffers import Named
from backends.pytorch.jobs import as_tensors, joined, rebuilt, shapes_of
from backends.pytorch.mixed_precision import autocast
from backends.pytorch.own_optimizer import TorchOptimizer
from profilers.mixed_precision import FP32
from profilers.process_memory import return_large_arrays


class ModuleReplica(Replica):
    """A job's module on the device that computes.

    The job's forward and loss get the batch's arrays as tensors there.
    """

    _trained: List[Any]  # the parameters that are trained

    def __init__(self, job: Job) -> None:
        self._job = job
        self.input_shape, self.classes = job.input_shape or (), job.classes or 0
        self.higher_is_better = job.higher_is_better
        self.accelerator = accelerators.kind()
        self._device = accelerators.torch_device(self.accelerator)
        self.module = job.model
        self._precision = FP32
        self._kept_outputs: Optional[KeptOutputs] = None
        self._checkpointed: Optional[CheckpointedBlocks] = None
        self._carried, self._carried_in_test = self._new_carried(), self._new_carried()

    def checkpoint_activations(self) -> None:
        self._checkpointed = CheckpointedBlocks(self.module, self._job.blocks)
        if self.accelerator == "cpu":
            return_large_arrays()

    def divisible(self) -> Tuple[Tuple[int, ...], int]:
        blocks = blocks_of(self.module, self._job.blocks)
        return tuple(map(elements, blocks)), 4 * sum(each.numel() for _, each in frozen(self.module))

    def loss(self, batch: Any) -> torch.Tensor:
        """The mean loss of a batch."""
        if self._precision == FP32:
            return self._loss(batch)
        with autocast(self._precision, self.accelerator):
            return self._loss(batch).float()

    def _loss(self, batch: Any) -> torch.Tensor:
        found: torch.Tensor = self._job.loss(*self._forward(batch, self._carried))
        if not found.requires_grad:
            raise refusal(NO_GRADIENT)
        if self._checkpointed is not None:
            self._checkpointed.require_call()
        return found

    def _forward(self, batch: Any, carried: CarriedState) -> Tuple[Any, Any]:
        """Outputs and targets of a batch, with the state that is carried, if any."""
        placed = as_tensors(batch, self._device)
        if self._job.state is None:
            found: Tuple[Any, Any] = self._job.forward(self.module, placed)
            return found
        outputs, targets, state = self._job.forward(
            self.module, placed, as_tensors(carried.before(placed), self._device)
        )
        carried.after(without_history(state))
        return outputs, targets

    def _new_carried(self) -> CarriedState:
        return CarriedState(self._job.state, shapes_of)

    def begin_evaluation(self) -> None:
        self._carried_in_test = self._new_carried()
        self._kept_outputs = KeptOutputs(self._job.metrics, joined)

    def evaluate(self, batch: Any) -> Tuple[float, Dict[str, float]]:
        self.module.eval()
        try:
            with torch.no_grad():
                return self._scores(batch)
        finally:
            self.module.train()

    def _scores(self, batch: Any) -> Tuple[float, Dict[str, float]]:
        self._carried_in_test.begin()
        found = self._forward(batch, self._carried_in_test)
        if self._kept_outputs is not None and self._kept_outputs.is_needed:
            self._kept_outputs.add(*as_tensors(list(found), torch.device("cpu")))
        metrics = {name: float(function(*found)) for name, function in self._job.of_batches.items()}
        return float(self._job.loss(*found)), metrics

    def end_evaluation(self, means: Dict[str, float]) -> Dict[str, float]:
        assert self._kept_outputs is not None, "it has begun"
        ended, self._kept_outputs = self._kept_outputs, None
        return ended.figures(means)

    def _make_own_optimizer(self) -> TorchOptimizer:
        return TorchOptimizer(self._job, self._trained)

    def _synchronise(self) -> None:
        accelerators.synchronise(self.accelerator)


def without_history(state: Any) -> Any:
    """A state whose tensors do not know how they were computed."""
    if isinstance(state, torch.Tensor):
        return state.detach()
    if isinstance(state, dict):
        return {key: without_history(value) for key, value in state.items()}
    return rebuilt(state, list(map(without_history, state))) if isinstance(state, (tuple, list)) else state


def trained(module: torch.nn.Module) -> Named:
    """The parameters that are trained, by name."""
    return [(name, value) for name, value in module.named_parameters() if value.requires_grad]


def frozen(module: torch.nn.Module) -> Named:
    """The parameters that are not trained, which are part of the state."""
    return [(name, value) for name, value in module.named_parameters() if not value.requires_grad]
