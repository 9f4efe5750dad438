"""A user's job in PyTorch: a module, its data sets, a loss and metrics."""

import functools
import random
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import default_collate

from backends.data.loader import ArraySamples, ItemSamples
from backends.data.streams import SampleStream
from backends.jobs.job import Job, LoadedJob
from backends.jobs.user_job import UserJob

#: Samples of the batch that a job is tried with: batch normalisation cannot learn from one.
TRIED = 2


def seed_everything(seed: int) -> None:
    """Seed all generators that a model or a data set may draw from."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def load_job(user: UserJob) -> LoadedJob:
    """The job with its data, tried with a first batch, which also completes lazy modules.

    Raises ValueError for a model or data of another kind; the user's own exceptions are passed on.
    """
    if not isinstance(user.model, nn.Module):
        raise ValueError("its model is a %s; with --framework torch it must be a torch.nn.Module" % _kind(user.model))
    train, test = (_samples(name, data, user.collate) for name, data in (("train", user.train), ("test", user.test)))
    job = Job(
        user.model, user.forward or _forward, user.loss, user.metrics,
        optimizer=user.optimizer, scheduler=user.scheduler,
    )  # fmt: skip
    if user.scheduler is not None and user.optimizer is None:
        raise ValueError("it has a scheduler and no optimizer for it; add the optimizer, or use --schedule")
    _try(job, train)
    if not any(parameter.requires_grad for parameter in user.model.parameters()):
        raise ValueError("its model has no parameter that is trained: requires_grad is false for all, or there is none")
    return LoadedJob(job, train, test, user.class_names)


def _samples(name: str, data: Any, collate: Optional[Callable[[List[Any]], Any]]) -> Any:
    if isinstance(data, DataLoader):
        raise ValueError("its %s is a DataLoader; give the data set itself, for planner makes the batches" % name)
    if type(data) is TensorDataset and collate is None:  # all rows of a batch are then read at once
        return ArraySamples(*data.tensors)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        samples = ItemSamples(data, collate or default_collate)
        if not len(samples):
            raise ValueError("its %s is empty" % name)
        return samples
    if hasattr(data, "__iter__"):
        return SampleStream(functools.partial(iter, data), collate or default_collate)
    raise ValueError("its %s is a %s; give a torch.utils.data.Dataset or IterableDataset" % (name, _kind(data)))


def _forward(module: nn.Module, batch: Any) -> Tuple[Any, Any]:
    """A batch is (inputs ..., targets); others need the job's own ``forward``."""
    if not isinstance(batch, (tuple, list)) or len(batch) < 2:
        raise ValueError(
            "a batch of its training data is a %s and not (inputs, targets); "
            "give the job forward(model, batch), which returns outputs and targets" % _kind(batch)
        )
    return module(*batch[:-1]), batch[-1]


def _try(job: Job, train: Any) -> None:
    """Compute the loss and the metrics of a few samples, without learning from them."""
    first = next((batch for _, batch in train.batches(TRIED)), None)
    if first is None:
        raise ValueError("its train is empty")
    module = job.model
    module.eval()
    with torch.no_grad():
        outputs, targets = job.forward(module, as_tensors(first))
        loss = job.loss(outputs, targets)
        _require_one(loss, "loss")
        for name, metric in job.metrics.items():
            _require_one(metric.function(outputs, targets), "metric %s" % name)


def _require_one(value: Any, what: str) -> None:
    elements = getattr(value, "numel", lambda: 1)()
    if elements != 1:
        raise ValueError(
            "its %s gives %d numbers for a batch; it must give one, the mean over the samples" % (what, elements)
        )


def as_tensors(batch: Any, device: Optional[torch.device] = None) -> Any:
    """The batch with its arrays as tensors, on a device if one is given, in any nesting."""
    if isinstance(batch, np.ndarray):
        batch = torch.from_numpy(batch)
    if device is not None and hasattr(batch, "to"):
        return batch.to(device)
    if isinstance(batch, dict):
        placed: Dict[Any, Any] = {key: as_tensors(value, device) for key, value in batch.items()}
        return placed
    if isinstance(batch, (tuple, list)):
        parts = [as_tensors(value, device) for value in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch


def _kind(value: Any) -> str:
    return type(value).__name__
