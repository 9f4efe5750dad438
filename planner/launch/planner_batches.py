"""A batch for each device in a script of torch.distributed, with as many steps on every process.

``planner launch`` puts this file beside the script and tells each process the batches of all, in
PLANNER_BATCH_SIZES. Without that variable all have the batch that the script asks for, so that one
script runs under ``planner launch``, under torchrun and alone:

    sampler = ProportionalSampler(data, batch_size=32)
    loader = DataLoader(data, batch_size=sampler.batch_size, sampler=sampler)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for inputs, labels in loader:
            loss = criterion(model(inputs), labels) * sampler.weight

Needs Python 3.8 and PyTorch. What is for Accelerate, Transformers or Lightning imports them itself.
"""

# SPDX-License-Identifier: BSD-2-Clause
#
# Copyright (c) 2026, the authors of edge-cluster-planner
#
# Redistribution and use in source and binary forms, with or without modification, are permitted
# provided that the following conditions are met:
# 1. Redistributions of source code must retain the above copyright notice, this list of
#    conditions and the following disclaimer.
# 2. Redistributions in binary form must reproduce the above copyright notice, this list of
#    conditions and the following disclaimer in the documentation and/or other materials provided
#    with the distribution.
# THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS "AS IS" AND ANY EXPRESS OR
# IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE IMPLIED WARRANTIES OF MERCHANTABILITY AND
# FITNESS FOR A PARTICULAR PURPOSE ARE DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR
# CONTRIBUTORS BE LIABLE FOR ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR CONSEQUENTIAL
# DAMAGES (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF SUBSTITUTE GOODS OR SERVICES; LOSS OF USE,
# DATA, OR PROFITS; OR BUSINESS INTERRUPTION) HOWEVER CAUSED AND ON ANY THEORY OF LIABILITY, WHETHER
# IN CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING NEGLIGENCE OR OTHERWISE) ARISING IN ANY WAY OUT
# OF THE USE OF THIS SOFTWARE, EVEN IF ADVISED OF THE POSSIBILITY OF SUCH DAMAGE.

from __future__ import annotations

import importlib
import itertools
import math
import os
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import distributed
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, RandomSampler, Sampler, SequentialSampler

#: What a data loader is asked for besides its data, its batch and their order.
_LOADER_OPTIONS = (
    "num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context",
    "prefetch_factor", "persistent_workers",
)  # fmt: skip


def place() -> tuple[int, int]:
    """This process's rank and the number of all processes; 0 and 1 outside of torch.distributed."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def batch_sizes(default: int) -> list[int]:
    """The batches of all processes by rank: those of the plan, else ``default`` for each.

    Raises ValueError where the plan is for another number of processes.
    """
    planned = os.environ.get("PLANNER_BATCH_SIZES")
    _, world = place()
    sizes = [default] * world if planned is None else [int(size) for size in planned.split(",")]
    if len(sizes) != world:
        raise ValueError(
            f"PLANNER_BATCH_SIZES={planned} is for {len(sizes)} processes, and there are {world}; "
            "unset it, or start one process for each device of the plan"
        )
    return sizes


def loss_weight() -> float:
    """b_i n / Σb: by it the mean over n processes of mean losses is the mean over all samples."""
    sizes = batch_sizes(1)
    return sizes[place()[0]] * len(sizes) / sum(sizes)


def _steps(samples: int, step: int, drop_last: bool) -> int:
    return samples // step if drop_last else math.ceil(samples / step)


class ProportionalSampler(DistributedSampler):
    """Deals the samples of each step to the processes in proportion to their batches.

    A step takes the next Σb samples of an order that is the same for all processes, of which each
    takes the next b_i by rank. The first samples fill up the last step, as DistributedSampler does,
    so that all steps are whole; ``drop_last`` leaves it out.

    batch_size: in, for all processes where no plan says otherwise; then, this process's own.
    weight: as ``loss_weight()``.
    order: draws the samples in place of a shuffle, e.g. a WeightedRandomSampler; it may draw with
        its own ``generator`` or PyTorch's default one, which are seeded for each epoch.
    Raises ValueError where there is no step.
    """

    def __init__(
        self, dataset: Any, batch_size: int, shuffle: bool = True, seed: int = 0, drop_last: bool = False,
        order: Sampler[int] | None = None,
    ) -> None:  # fmt: skip
        rank, world = place()
        super().__init__(dataset, world, rank, shuffle, seed, drop_last)
        sizes = batch_sizes(batch_size)
        self.batch_size, self.weight = sizes[rank], loss_weight()
        self._step, self._first = sum(sizes), sum(sizes[:rank])
        own_order = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        self._order = own_order if order is None else order
        steps = _steps(len(self._order), self._step, drop_last)
        if not steps:
            raise ValueError(
                f"{len(self._order)} samples make no step of {self._step}; give more data or smaller batches"
            )
        self.num_samples, self.total_size = steps * self.batch_size, steps * self._step

    def __iter__(self) -> Iterator[int]:
        samples = self._drawn()
        missing = max(0, self.total_size - len(samples))
        samples += list(itertools.islice(itertools.cycle(samples), missing))
        for start in range(self._first, self.total_size, self._step):
            yield from samples[start : start + self.batch_size]

    def _drawn(self) -> list[int]:
        """All samples of the epoch, in the order in which one process would take them."""
        order, seed = self._order, self.seed + self.epoch
        if hasattr(order, "set_epoch"):
            order.set_epoch(self.epoch)
        if hasattr(order, "generator"):
            order.generator = torch.Generator().manual_seed(seed)
        state = torch.get_rng_state()
        torch.default_generator.manual_seed(seed)
        try:
            return list(order)
        finally:
            torch.set_rng_state(state)


class ProportionalStream(IterableDataset):
    """This process's part of an IterableDataset, which each process reads as a whole.

    A step is the next Σb samples, as with ProportionalSampler, filled up or left out at the end.
    batch_size: in, for all processes where no plan says otherwise; then, this process's own.
    """

    def __init__(self, dataset: Any, batch_size: int, drop_last: bool = False) -> None:
        sizes = batch_sizes(batch_size)
        rank, _ = place()
        self.dataset, self.drop_last = dataset, drop_last
        self.batch_size, self.weight = sizes[rank], loss_weight()
        self._step, self._first = sum(sizes), sum(sizes[:rank])

    def set_epoch(self, epoch: int) -> None:
        """Tell the data set, if it wants to know."""
        if hasattr(self.dataset, "set_epoch"):
            self.dataset.set_epoch(epoch)

    def __len__(self) -> int:
        """Samples of this process; raises TypeError where the data set cannot tell its own."""
        return self.batch_size * _steps(len(self.dataset), self._step, self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        first: list[Any] = []
        step: list[Any] = []
        for sample in self.dataset:
            step.append(sample)
            if len(step) == self._step:
                yield from self._own(step)
                first, step = first or step, []
        if step and not self.drop_last:
            fill = first or step
            yield from self._own([*step, *itertools.islice(itertools.cycle(fill), self._step - len(step))])

    def _own(self, step: list[Any]) -> list[Any]:
        return step[self._first : self._first + self.batch_size]


def prepare(accelerator: Any, *objects: Any) -> Any:
    """As ``accelerator.prepare``, but loaders of this file's sampler or stream keep their batches.

    Accelerate would deal these once more, in equal parts. ``even_batches``, ``split_batches`` and
    ``dispatch_batches`` hold for the other loaders.
    """
    return accelerator.prepare(*(_kept(accelerator, each) if _is_dealt(each) else each for each in objects))


def _is_dealt(loader: Any) -> bool:
    return isinstance(loader, DataLoader) and (
        isinstance(loader.sampler, ProportionalSampler) or isinstance(loader.dataset, ProportionalStream)
    )


def _kept(accelerator: Any, loader: DataLoader) -> Any:
    """Accelerate's own kind of loader, which it leaves as it is."""
    from accelerate.data_loader import prepare_data_loader

    kept = prepare_data_loader(
        loader, accelerator.device, num_processes=1, process_index=0, put_on_device=accelerator.device_placement,
        dispatch_batches=False, non_blocking=accelerator.non_blocking,
        use_stateful_dataloader=accelerator.use_stateful_dataloader,
    )  # fmt: skip
    kept._is_accelerate_prepared = True
    return kept


class ProportionalTrainer:
    """For Transformers: ``class MyTrainer(ProportionalTrainer, Trainer): pass``.

    Another Trainer than Transformers' own may stand there, also one with a loss of its own.
    ``per_device_train_batch_size`` counts where no plan says otherwise. Evaluation stays as it is,
    in batches of ``per_device_eval_batch_size`` on all processes.
    """

    args: Any
    accelerator: Any
    train_dataset: Any
    compute_loss_func: Any
    _get_train_sampler: Any

    def get_train_dataloader(self) -> Any:
        """The Trainer's own loader, dealt in proportion."""
        args = self.args
        args.average_tokens_across_devices = True  # where a loss is divided by tokens, by those of all processes
        loader = super().get_train_dataloader()  # type: ignore[misc]
        options = {name: getattr(loader, name) for name in _LOADER_OPTIONS}
        size, drop_last = args.per_device_train_batch_size, args.dataloader_drop_last
        if isinstance(self.train_dataset, IterableDataset):
            stream = ProportionalStream(self.train_dataset, size, drop_last)
            return _kept(self.accelerator, DataLoader(stream, stream.batch_size, **options))
        seed = args.seed if args.data_seed is None else args.data_seed
        sampler = ProportionalSampler(loader.dataset, size, True, seed, drop_last, self._get_train_sampler())
        return _kept(self.accelerator, DataLoader(loader.dataset, sampler.batch_size, sampler=sampler, **options))

    def get_total_train_batch_size(self, args: Any) -> int:
        """Samples of all processes between two updates, which the Trainer logs."""
        return sum(batch_sizes(args.per_device_train_batch_size)) * int(args.gradient_accumulation_steps)

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        """The Trainer's loss, weighed while training.

        A loss that the model divides by the labels of all processes has its weight already.
        """
        divided = [self.compute_loss_func is not None]
        watch = model.register_forward_pre_hook(
            lambda _, __, given: divided.append("num_items_in_batch" in given), with_kwargs=True
        )
        with watch:
            found = super().compute_loss(model, inputs, *args, **options)  # type: ignore[misc]
        weight = loss_weight() if model.training and not any(divided) else 1.0
        return (found[0] * weight, *found[1:]) if isinstance(found, tuple) else found * weight


def lightning_callback() -> Any:
    """For Lightning's Trainer: a callback that weighs gradients, and leaves losses as they are."""
    package = "pytorch_lightning" if "pytorch_lightning" in sys.modules else "lightning.pytorch"

    class WeighLoss(importlib.import_module(package).Callback):  # type: ignore[misc]
        def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
            loss.register_hook(lambda gradient: gradient * loss_weight())

    return WeighLoss()


def lightning_nodes() -> dict[str, Any]:
    """``num_nodes`` and ``devices`` of Lightning's Trainer, for the processes that are there."""
    if "WORLD_SIZE" not in os.environ:
        return {}
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return {"num_nodes": int(os.environ["WORLD_SIZE"]) // local, "devices": local}
