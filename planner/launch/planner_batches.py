"""A batch for each device in a script of torch.distributed, with as many steps on every process.

``planner launch`` puts this file beside the script and tells each process the batches of all, in
PLANNER_BATCH_SIZES. Without that variable all have the batch that the script asks for, so that one
script runs under ``planner launch``, under torchrun and alone:

    sampler = ProportionalSampler(data, batch_size=32)
    loader = DataLoader(data, batch_size=sampler.batch_size, sampler=sampler)
    sampler.set_epoch(epoch)  # before each
    loss = criterion(model(inputs), labels) * sampler.weight

Needs Python 3.8 and PyTorch. What is for Accelerate, Transformers or Lightning imports them itself.
"""

# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026, the authors of edge-cluster-planner
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

    Raises ValueError where these are no batches, or those of another number of processes.
    """
    _, world = place()
    given = os.environ.get("PLANNER_BATCH_SIZES") or ",".join([str(default)] * world)
    sizes = [int(size) if size.strip().isdecimal() else 0 for size in given.split(",")]
    if len(sizes) != world or 0 in sizes:
        raise ValueError(
            f"batches of {given} samples do not fit {world} processes, each of which needs at least 1; "
            "unset PLANNER_BATCH_SIZES, or start one process for each device of the plan"
        )
    return sizes


def loss_weight(items: Any = None) -> Any:
    """b_i n / Σb: by it the mean over n processes of mean losses is the mean over all samples.

    items: in place of b_i, where a loss is the mean over something else than samples: how many
        there are in this process's batch, e.g. ``(labels != -100).sum()``. All processes must ask.
    """
    rank, world = place()
    if items is None:
        sizes = batch_sizes(1)
        return sizes[rank] * world / sum(sizes)
    own = torch.as_tensor(items).float().clamp(min=1e-6)  # a process may have none
    total = own.clone()
    if world > 1:
        distributed.all_reduce(total)
    return own * world / total


class ProportionalSampler(DistributedSampler):
    """Deals the samples of each step in proportion to batches. Lightning lets this class alone.

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
        self.batch_size, self.weight = batch_sizes(batch_size)[rank], loss_weight()
        own_order = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        self._order = own_order if order is None else order
        len(self)

    def __len__(self) -> int:
        # Asked anew, for a script may call init_process_group after it has made its sampler.
        samples, step = len(self._order), sum(batch_sizes(self.batch_size))
        steps = samples // step if self.drop_last else math.ceil(samples / step)
        if not steps:
            raise ValueError(f"{samples} samples make no step of {step}; give more data or smaller batches")
        return steps * self.batch_size

    def __iter__(self) -> Iterator[int]:
        sizes, (rank, _) = batch_sizes(self.batch_size), place()
        step, first = sum(sizes), sum(sizes[:rank])
        samples, total = self._drawn(), len(self) // self.batch_size * step
        samples += itertools.islice(itertools.cycle(samples), max(0, total - len(samples)))
        for start in range(first, total, step):
            yield from samples[start : start + self.batch_size]

    def _drawn(self) -> list[int]:
        """All samples of the epoch, in the order in which one process would take them."""
        order, seed = self._order, self.seed + self.epoch
        if hasattr(order, "set_epoch"):
            order.set_epoch(self.epoch)
        if hasattr(order, "generator"):
            order.generator = torch.Generator().manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            return list(order)


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
        steps = len(self.dataset) / self._step
        return self.batch_size * (math.floor(steps) if self.drop_last else math.ceil(steps))

    def __iter__(self) -> Iterator[Any]:
        samples, first = iter(self.dataset), None
        while True:
            step = list(itertools.islice(samples, self._step))
            missing = self._step - len(step)
            if not step or (missing and self.drop_last):
                return
            first = first or step
            step = [*step, *itertools.islice(itertools.cycle(first), missing)]
            yield from step[self._first : self._first + self.batch_size]


def prepare(accelerator: Any, *objects: Any) -> Any:
    """As ``accelerator.prepare``, but loaders of this file's sampler or stream keep their batches.

    Accelerate would deal these once more, in equal parts. Its options hold for the other loaders.
    A schedule of the learning rate makes one step an update, as with ``split_batches``.
    """
    prepared = accelerator.prepare(*(_kept(accelerator, each) for each in objects))
    for schedule in accelerator._schedulers:
        schedule.split_batches = True
    return prepared


def _sampler(loader: Any) -> Any:
    """That of a loader which Accelerate may have prepared; None for a batch sampler of its own."""
    batches = getattr(loader.batch_sampler, "batch_sampler", loader.batch_sampler)
    return getattr(batches, "sampler", None)


def _kept(accelerator: Any, each: Any) -> Any:
    """A loader that is dealt, as Accelerate's own kind, which it leaves alone; others as given."""
    if not isinstance(each, DataLoader) or not (
        isinstance(_sampler(each), ProportionalSampler) or isinstance(each.dataset, ProportionalStream)
    ):
        return each
    from accelerate.data_loader import prepare_data_loader

    kept = prepare_data_loader(
        each, accelerator.device, num_processes=1, process_index=0, put_on_device=accelerator.device_placement,
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

    def get_train_dataloader(self: Any) -> Any:
        """The Trainer's own loader, dealt in proportion."""
        args = self.args
        args.average_tokens_across_devices = True  # where a loss is divided by tokens, by those of all processes
        loader = super().get_train_dataloader()  # type: ignore[misc]
        options = {name: getattr(loader, name) for name in _LOADER_OPTIONS}
        size, drop_last = args.train_batch_size, args.dataloader_drop_last
        if isinstance(self.train_dataset, IterableDataset):
            stream = ProportionalStream(self.train_dataset, size, drop_last)
            return _kept(self.accelerator, DataLoader(stream, stream.batch_size, **options))
        order = _sampler(loader)
        if order is None:
            raise ValueError("a batch sampler cannot be divided among processes; give a sampler of single samples")
        seed = args.seed if args.data_seed is None else args.data_seed
        sampler = ProportionalSampler(loader.dataset, size, True, seed, drop_last, order)
        return _kept(self.accelerator, DataLoader(loader.dataset, sampler.batch_size, sampler=sampler, **options))

    def get_total_train_batch_size(self, args: Any) -> int:
        """Samples of all processes between two updates, which the Trainer logs."""
        return sum(batch_sizes(args.train_batch_size)) * int(args.gradient_accumulation_steps)

    def compute_loss(self: Any, model: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        """The Trainer's loss; while training, weighed as the mean over this process's ``items``.

        Some losses are not that mean but a sum, divided by the items of all processes and of all
        accumulated batches. These are given as many times fewer as the weight makes up for.
        """
        _, world = place()
        if world == 1 or not model.training:
            return super().compute_loss(model, inputs, *args, **options)  # type: ignore[misc]
        weight = loss_weight(self.items(inputs))
        if options.get("num_items_in_batch") is not None:
            options["num_items_in_batch"] = options["num_items_in_batch"] * weight / world
        self.args.average_tokens_across_devices = False  # for which the Trainer would multiply by n
        found = super().compute_loss(model, inputs, *args, **options)  # type: ignore[misc]
        self.args.average_tokens_across_devices = True
        return (found[0] * weight, *found[1:]) if isinstance(found, tuple) else found * weight

    def items(self, inputs: Any) -> Any:
        """What a mean loss is the mean over: the labels that count, or samples where this is None.

        Override it for a loss that is the mean over something else.
        """
        labels = inputs.get("labels")
        first = int(getattr(self, "_loss_shifts_labels", False))  # a language model predicts no first label
        return labels[..., first:].ne(-100).sum() if torch.is_tensor(labels) else None


def lightning_callback(items: Any = None) -> Any:
    """For Lightning's Trainer: a callback that weighs gradients, by ``items(batch)`` if given."""
    package = "pytorch_lightning" if "pytorch_lightning" in sys.modules else "lightning.pytorch"

    class WeighLoss(importlib.import_module(package).Callback):  # type: ignore[misc]
        def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
            self.weight = loss_weight(items and items(batch))

        def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
            loss.register_hook(lambda gradient: gradient * self.weight)

    return WeighLoss()


def lightning_nodes() -> dict[str, Any]:
    """``num_nodes`` and ``devices`` of Lightning's Trainer, for the processes that are there.

    Raises ValueError where nodes have unlike numbers of processes, which Lightning cannot count.
    """
    if "WORLD_SIZE" not in os.environ:
        return {}
    rank, world = place()
    local = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    node = int(os.environ.get("NODE_RANK", rank // local))
    if node * local + int(os.environ.get("LOCAL_RANK", rank % local)) != rank:
        raise ValueError(f"not all hosts have {local} of {world} processes, as Lightning needs; plan as many on each")
    return {"num_nodes": world // local, "devices": local}
