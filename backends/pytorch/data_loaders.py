"""A user's DataLoader is read with its workers, sampler and collate_fn, in planner's batches."""

import copy
from typing import Any, Callable, Iterable, Iterator, List, Optional, Tuple

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler
from torch.utils.data.dataloader import default_collate
from torch.utils.data.distributed import DistributedSampler
from torch.utils.data.sampler import BatchSampler

from backends.data.loader import BatchSource, Chosen, EvaluationSet, ItemSamples
from backends.data.sample_order import SampleOrder, all_in_lanes
from backends.data.sequential_samples import SampleStream
from backends.pytorch.labels import labels_of
from backends.pytorch.sampler_order import SamplerOrder
from backends.pytorch.worker_batches import WorkerBatches, said_in_one_line

Collate = Callable[[List[Any]], Any]


def samples_of(name: str, loader: Any, collate: Collate, in_order: bool) -> EvaluationSet:
    """The samples of a DataLoader.

    name: of the job's attribute. collate: takes the place of torch's own. in_order: whether the job
    needs samples that follow one another. Raises ValueError for one whose batches cannot be others.
    """
    if type(loader).__iter__ is not DataLoader.__iter__:
        raise ValueError(
            "its %s is a %s with an __iter__ of its own, and planner makes the batches; give a plain DataLoader, and "
            "do in its collate_fn, or in forward, what is done to a batch" % (name, type(loader).__name__)
        )
    collate = loader.collate_fn if has_collate(loader) else collate
    if isinstance(loader.dataset, IterableDataset):
        _require_batch_size(name, loader, loader.batch_sampler)
        return SampleStream(
            lambda: iter(DataLoader(loader.dataset, None, collate_fn=_same, **settings(loader))), collate
        )
    sampler = _sampler(name, loader)
    is_shuffled = type(sampler) is RandomSampler and not sampler.replacement and len(sampler) == len(loader.dataset)
    if in_order and type(sampler) is not SequentialSampler:
        raise ValueError(
            "its %s has a %s, and a job with a state needs its samples in order; leave out the sampler, "
            "or shuffle=True" % (name, type(sampler).__name__)
        )
    is_planned = in_order or is_shuffled or (name == "test" and type(sampler) is SequentialSampler)
    return LoaderSamples(loader, None if is_planned else sampler, collate)


def has_collate(loader: Any) -> bool:
    """Whether a DataLoader has a collate_fn other than torch's own."""
    return loader.collate_fn not in (None, default_collate)


def _sampler(name: str, loader: Any) -> Any:
    """What gives the order of the samples."""
    made = loader.batch_sampler
    _require_batch_size(name, loader, made)
    sampler = made.sampler
    if isinstance(sampler, DistributedSampler):
        raise ValueError(
            "its %s has a DistributedSampler, and planner itself deals the samples to the devices; "
            "give shuffle=True in its place" % name
        )
    return sampler


def _require_batch_size(name: str, loader: Any, made: Any) -> None:
    """Raises ValueError where batches of another size cannot take the place of its own."""
    if made is None:
        raise ValueError(
            "its %s is a DataLoader with batch_size=None, and planner makes the batches; let its data set yield "
            "samples, one by one, and give a batch_size, or the data set itself" % name
        )
    if type(made) is not BatchSampler:
        raise ValueError(
            "its %s is a DataLoader with a batch_sampler of its own, %s, and planner makes batches of other sizes; "
            "give a batch_size and perhaps a sampler in its place" % (name, type(made).__name__)
        )


def described(name: str, loader: Any, in_lanes: bool) -> str:
    """What is done with a DataLoader, in a line; in_lanes: as in ``EvaluationSet``."""
    count = loader.num_workers
    reads = (
        "%d workers read it" % count if count > 1 else "it is read %s" % ("by a worker" if count else "without workers")
    )
    order = ""
    if in_lanes:
        order = ", in lanes"
    elif name == "train" and loader.batch_sampler is not None and not isinstance(loader.dataset, IterableDataset):
        order = ", in the order of its %s" % type(loader.batch_sampler.sampler).__name__
    return "%s is a DataLoader: batches of the plan take the place of its own, and %s%s" % (name, reads, order)


def settings(given: Any) -> Any:
    """Those of a user's DataLoader that another one keeps.

    Workers are forked: another process could not import this program from its archive.
    """
    return {
        "num_workers": given.num_workers,
        "pin_memory": given.pin_memory and torch.cuda.is_available(),
        "timeout": given.timeout,
        "worker_init_fn": given.worker_init_fn,
        "multiprocessing_context": "fork" if given.num_workers else None,
        "generator": given.generator,
        "prefetch_factor": given.prefetch_factor,
    }


def _same(sample: Any) -> Any:
    return sample


class LoaderSamples(ItemSamples):
    """The samples of a DataLoader's data set, read as it reads them.

    sampler: which gives the order; None for a seeded one in training, that of the data in a test.
    """

    def __init__(self, loader: Any, sampler: Any, collate: Collate) -> None:
        super().__init__(loader.dataset, collate, labels_of)
        self._given, self._sampler, self._make_batch = loader, sampler, collate
        self._positions = np.arange(len(loader.dataset))
        self._lasting: Optional[Any] = None

    def __len__(self) -> int:
        return len(self._positions)

    def count(self) -> int:
        return len(self._sampler) if hasattr(self._sampler, "__len__") else len(self)

    def batch(self, chosen: Chosen) -> Any:
        return super().batch(self._positions[chosen])

    def labels(self) -> np.ndarray:
        own: np.ndarray = super().labels()[self._positions]
        return own

    def part(self, positions: np.ndarray) -> "LoaderSamples":
        own = copy.copy(self)
        own._positions = self._positions[positions]
        return own

    def order(self, seed: int) -> SampleOrder:
        if self._sampler is None:
            return super().order(seed)
        return SamplerOrder(self._sampler, self._positions, len(self._given.dataset), seed)

    def loader(self, batch: int, seed: int) -> BatchSource:
        return WorkerBatches(self.order(seed), self.made, batch)

    def batches(self, size: int) -> Iterator[Tuple[int, Any]]:
        chosen = list(self._all(size))
        with said_in_one_line():
            for each, batch in zip(chosen, self.made(chosen, again=True)):
                yield len(each), batch

    def _all(self, size: int) -> Iterator[np.ndarray]:
        """All samples of an evaluation, in batches."""
        if self.in_lanes:
            yield from all_in_lanes(len(self), size)
        elif len(self):
            order = self.order(0)
            every = order.epoch() if isinstance(order, SamplerOrder) else np.arange(len(self))
            yield from np.split(every, range(size, len(every), size))

    def made(self, chosen: Iterable[np.ndarray], again: bool = False) -> Iterator[Any]:
        """These batches of samples, read with the settings of the user's DataLoader.

        again: whether others are made later, for which workers that persist are kept.
        """
        own, lasting = (self._positions[each].tolist() for each in chosen), self._lasting
        if lasting is None or not again:
            batches: Any = _Batches()
            persists = again and self._given.persistent_workers
            collate, kept = self._make_batch, {"persistent_workers": persists, **settings(self._given)}
            lasting = batches, DataLoader(self._given.dataset, batch_sampler=batches, collate_fn=collate, **kept)
            self._lasting = lasting if persists else None
        lasting[0].positions = own
        return iter(lasting[1])

    def close(self) -> None:
        self._lasting = None


class _Batches:
    """Positions of the samples of each batch, set anew for every pass."""

    positions: Iterable[List[int]] = ()

    def __iter__(self) -> Iterator[List[int]]:
        return iter(self.positions)
