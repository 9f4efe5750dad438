"""The labels of a user's data set are read without its samples, which would all be decoded."""

from typing import Any

import numpy as np
import torch
from torch.utils.data import ConcatDataset, Subset, TensorDataset

from backends.data.partition import as_labels
from backends.jobs.user_job import type_in_words

#: Where data sets of torchvision, and many others, keep all targets.
ATTRIBUTES = ("targets", "labels")


def labels_of(data: Any) -> np.ndarray:
    """The labels of data that are read by position, (count,) whole numbers or texts.

    Read are the last tensor of a TensorDataset, the attribute ``targets`` or ``labels``, and the
    last part of each sample of a list; also of parts of such data, and of several one after the
    other. Raises ValueError for other data, and for targets that are no labels.
    """
    if isinstance(data, Subset):
        return labels_of(data.dataset)[np.asarray(data.indices, np.int64)]
    if isinstance(data, ConcatDataset):
        return np.concatenate([labels_of(part) for part in data.datasets])
    return as_labels(_targets(data), len(data))


def _targets(data: Any) -> Any:
    if isinstance(data, TensorDataset):
        return data.tensors[-1]
    for name in ATTRIBUTES:
        values = getattr(data, name, None)
        if values is not None and not callable(values):
            return values.cpu() if isinstance(values, torch.Tensor) else values
    if isinstance(data, (list, tuple)) and all(isinstance(sample, (list, tuple)) and sample for sample in data):
        return [sample[-1] for sample in data]
    raise ValueError(
        "its train is %s, which does not tell its labels; give it an attribute targets with one label a sample"
        % type_in_words(data)
    )
