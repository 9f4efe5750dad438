"""Labels of users' data sets are read where these keep them, and no sample is."""

import importlib

import numpy as np
import pytest

from tests.installed import computes_with

pytestmark = computes_with("torch")


class Pictures:
    """Samples that must not be read."""

    def __init__(self, **kept):
        self.__dict__.update(kept)

    def __len__(self):
        return 4

    def __getitem__(self, at):
        raise AssertionError("a sample was read")


@pytest.fixture
def torch():
    """Imported by tests that need it, and not by every process that collects them."""
    return importlib.import_module("torch")


@pytest.fixture
def labels_of(torch):
    return importlib.import_module("backends.pytorch.labels").labels_of


@pytest.fixture
def tensors(torch):
    return torch.utils.data.TensorDataset(torch.zeros(4, 2), torch.tensor([3, 1, 1, 0]))


def test_labels_are_read_from_attributes(labels_of, torch):
    assert labels_of(Pictures(targets=[3, 1, 1, 0])).tolist() == [3, 1, 1, 0]
    assert labels_of(Pictures(targets=torch.tensor([3, 1, 1, 0]))).tolist() == [3, 1, 1, 0]
    assert labels_of(Pictures(labels=np.array(["b", "a", "a", "c"]))).tolist() == ["b", "a", "a", "c"]


def test_labels_are_read_from_tensors(labels_of, torch, tensors):
    assert labels_of(tensors).tolist() == [3, 1, 1, 0]
    column = torch.tensor([[3], [1], [1], [0]])
    assert labels_of(torch.utils.data.TensorDataset(torch.zeros(4, 2), column)).tolist() == [3, 1, 1, 0]


def test_labels_are_read_through_subsets_and_joined_sets(labels_of, torch, tensors):
    data = torch.utils.data
    assert labels_of(data.Subset(tensors, [3, 0])).tolist() == [0, 3]
    joined = data.ConcatDataset([tensors, data.Subset(Pictures(targets=[5, 6, 7, 8]), [1])])
    assert labels_of(joined).tolist() == [3, 1, 1, 0, 6]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Pictures(), "its train is a value of type Pictures, which does not tell its labels"),
        (Pictures(targets=lambda: [1, 2, 3, 4]), "does not tell its labels; give it an attribute targets"),
        (Pictures(targets=[1, 2]), r"\(2,\) targets for 4 samples are no labels"),
        (Pictures(targets=np.zeros(4, np.float32)), "targets of type float32 are no labels"),
        ([{"x": 1, "y": 2}], "its train is a value of type list, which does not tell its labels"),
    ],
)
def test_data_without_labels_are_refused(labels_of, data, message):
    with pytest.raises(ValueError, match=message):
        labels_of(data)


def test_tensors_without_labels_are_refused(labels_of, torch):
    for data in (Pictures(targets=torch.zeros(4)), torch.utils.data.TensorDataset(torch.zeros(4, 2))):
        with pytest.raises(ValueError, match="targets of type float32 are no labels"):
            labels_of(data)
