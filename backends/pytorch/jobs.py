"""A user's job in PyTorch: a module, its data sets, a loss and metrics."""

import functools
import itertools
import random
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import default_collate

from backends.data.loader import ArraySamples, ItemSamples
from backends.data.sequential_samples import SampleStream
from backends.jobs.carried_state import CarriedState, require_plain
from backends.jobs.failure import refusal
from backends.jobs.job import Job, LoadedJob
from backends.jobs.kept_outputs import KeptOutputs
from backends.jobs.trial import (
    TRIED,
    require_batch,
    require_metrics,
    require_one,
    require_pair,
    require_tensor,
    require_whole,
)
from backends.jobs.user_job import ARGUMENTS, WITH_STATE, UserJob, require_arguments, type_in_words
from backends.pytorch import accelerators
from backends.pytorch.data_loaders import described, has_collate, samples_of
from backends.pytorch.labels import labels_of

NO_DATA = "its %s is %s; give a torch.utils.data.Dataset or IterableDataset"


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
        raise ValueError(
            "its model is %s; with --framework torch it must be a torch.nn.Module" % type_in_words(user.model)
        )
    _require_float32(user.model)
    arguments = ARGUMENTS["forward"] if user.state is None else WITH_STATE
    require_arguments("its forward", user.forward or _forward, arguments)
    given = {"train": user.train, "test": user.test}
    train, test = (_samples(name, data, user) for name, data in given.items())
    train.in_lanes = test.in_lanes = user.state is not None
    job = Job(
        user.model, user.forward or _forward, user.loss, user.metrics, state=user.state,
        optimizer=user.optimizer, scheduler=user.scheduler, blocks=_blocks(user),
    )  # fmt: skip
    if user.scheduler is not None and user.optimizer is None:
        raise ValueError("it has a scheduler and no optimizer for it; add the optimizer, or use --schedule")
    for name, data in (("train", train), ("test", test)):
        _try(job, name, data)
    if not any(parameter.requires_grad for parameter in user.model.parameters()):
        raise ValueError("its model has no parameter that is trained: requires_grad is false for all, or there is none")
    loaders = {name: data for name, data in given.items() if isinstance(data, DataLoader)}
    note = "; ".join(described(name, loader, user.state is not None) for name, loader in loaders.items())
    return LoadedJob(job, train, test, user.class_names, note)


def _blocks(user: UserJob) -> List[nn.Module]:
    """Raises ValueError for what is no module of the model."""
    own = list(user.model.modules())
    given = user.blocks if isinstance(user.blocks, (list, tuple, nn.ModuleList, nn.Sequential)) else [user.blocks]
    blocks = [] if user.blocks is None else list(given)
    for block in blocks:
        if not any(block is each for each in own):
            raise ValueError(
                "its blocks hold %s; give modules of the model, as in blocks=list(model.layers)" % type_in_words(block)
            )
    return blocks


def _samples(name: str, data: Any, user: UserJob) -> Any:
    collate = user.collate
    if isinstance(data, DataLoader):
        if collate is not None and has_collate(data):
            raise ValueError("it has a collate, and the DataLoader of its %s has a collate_fn; give one of them" % name)
        return samples_of(name, data, collate or _collate, user.state is not None)
    if isinstance(data, (dict, str)):
        raise ValueError(NO_DATA % (name, type_in_words(data)))
    if type(data) is TensorDataset and collate is None:  # all rows of a batch are then read at once
        return ArraySamples(*data.tensors)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return ItemSamples(data, collate or _collate, labels_of)
    if hasattr(data, "__next__"):
        raise ValueError(
            "its %s is %s, which can be read only once; give an IterableDataset, whose __iter__ begins again"
            % (name, type_in_words(data))
        )
    if hasattr(data, "__iter__"):
        return SampleStream(functools.partial(iter, data), collate or _collate)
    raise ValueError(NO_DATA % (name, type_in_words(data)))


def _collate(samples: List[Any]) -> Any:
    try:
        return default_collate(samples)
    except (RuntimeError, TypeError) as error:
        raise refusal(
            "no batch can be made of its samples: %s; give samples of one shape, or the job a collate"
            % str(error).splitlines()[0]
        ) from error


def _forward(module: nn.Module, batch: Any) -> Tuple[Any, Any]:
    require_batch(batch, (tuple, list))
    return module(*batch[:-1]), batch[-1]


def _try(job: Job, name: str, data: Any) -> None:
    """Compute the loss and the metrics of a few samples, without learning from them."""
    first = next(data.batches(TRIED), None)
    if first is None:
        raise ValueError("its %s is empty" % name)
    job.model.eval()
    with torch.no_grad():
        found = _tried(job, first[1])
        loss = job.loss(*found)
        require_tensor(loss, isinstance(loss, torch.Tensor))
        require_one(loss, _elements(loss), "loss")
        require_metrics(job.metrics, found, _elements)
        batches = [batch for size in (TRIED, 1) for _, batch in itertools.islice(data.batches(size), 1)]
        results = (_tried(job, batch) for batch in batches)
        require_whole(KeptOutputs(job.metrics, joined), results, _elements)


def _tried(job: Job, batch: Any) -> Tuple[Any, Any]:
    batch = as_tensors(batch)
    carried = CarriedState(job.state, shapes_of)
    if job.state is None:
        found = job.forward(job.model, batch)
        require_pair(found)
        return found[0], found[1]
    found = job.forward(job.model, batch, as_tensors(carried.before(batch)))
    carried.require(found, batch)
    return found[0], found[1]


def shapes_of(state: Any) -> List[Tuple[int, ...]]:
    """Shapes of all tensors of a state, in their order. Raises JobFailure for other objects."""
    if isinstance(state, (torch.Tensor, np.ndarray)):
        return [tuple(state.shape)]
    if isinstance(state, dict):
        state = [state[key] for key in sorted(state)]
    if isinstance(state, (tuple, list)):
        return [shape for each in state for shape in shapes_of(each)]
    require_plain(state)
    return []


def joined(parts: List[Any]) -> Any:
    """Values of all batches as one: tensors along their first axis, others as a list.

    Raises ValueError for tensors of shapes that do not fit.
    """
    first = parts[0]
    if isinstance(first, dict):
        return {key: joined([part[key] for part in parts]) for key in first}
    if isinstance(first, (tuple, list)) and any(isinstance(each, (torch.Tensor, dict, tuple, list)) for each in first):
        return tuple(joined(list(values)) for values in zip(*parts))
    if not isinstance(first, torch.Tensor) or not first.dim():
        return parts
    try:
        return torch.cat(parts)
    except RuntimeError as error:
        shapes = " and ".join(sorted({str(tuple(part.shape)) for part in parts}))
        raise ValueError("tensors of %s do not fit" % shapes) from error


def _elements(value: Any) -> Optional[int]:
    if isinstance(value, torch.Tensor):
        return int(value.numel())
    return int(np.size(value)) if isinstance(value, (np.generic, np.ndarray, float, int)) else None


def _require_float32(model: nn.Module) -> None:
    """Raises ValueError for a model whose parameters another type holds: they would be rounded."""
    for name, parameter in model.named_parameters():
        if parameter.dtype != torch.float32:
            raise ValueError(
                "its model's parameter %s is %s, and weights are float32 here; call model.float(), "
                "and compute in another precision with --precision" % (name, parameter.dtype)
            )


def as_tensors(batch: Any, device: Optional[torch.device] = None) -> Any:
    """The batch with its arrays as tensors, on a device if one is given, in any nesting."""
    if isinstance(batch, np.ndarray):
        batch = torch.from_numpy(batch)
    if device is not None and hasattr(batch, "to"):
        return accelerators.placed(batch, device)
    if isinstance(batch, dict):
        placed: Dict[Any, Any] = {key: as_tensors(value, device) for key, value in batch.items()}
        return placed
    if isinstance(batch, (tuple, list)):
        return rebuilt(batch, [as_tensors(value, device) for value in batch])
    return batch


def rebuilt(like: Any, parts: List[Any]) -> Any:
    """A tuple, named or not, or a list of other parts."""
    return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)
