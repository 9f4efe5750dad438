"""Labels of users' data sets are read where these keep them, and no sample is."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset  # noqa: E402

from backends.pytorch.labels import labels_of  # noqa: E402
from tests.installed import computes_with  # noqa: E402

pytestmark = computes_with("torch")


class Pictures(Dataset):
    """Samples that must not be read."""

    def __init__(self, **kept):
        self.__dict__.update(kept)

    def __len__(self):
        return 4

    def __getitem__(self, at):
        raise AssertionError("a sample was read")


TENSORS = TensorDataset(torch.zeros(4, 2), torch.tensor([3, 1, 1, 0]))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (Pictures(targets=[3, 1, 1, 0]), [3, 1, 1, 0]),
        (Pictures(targets=torch.tensor([3, 1, 1, 0])), [3, 1, 1, 0]),
        (Pictures(labels=np.array(["b", "a", "a", "c"])), ["b", "a", "a", "c"]),
        (TENSORS, [3, 1, 1, 0]),
        (TensorDataset(torch.zeros(4, 2), torch.tensor([[3], [1], [1], [0]])), [3, 1, 1, 0]),
        ([(0.5, 2), (0.1, 1)], [2, 1]),
        ([(torch.zeros(2), torch.tensor(2)), (torch.zeros(2), torch.tensor(1))], [2, 1]),
        (Subset(TENSORS, [3, 0]), [0, 3]),
        (ConcatDataset([TENSORS, Subset(Pictures(targets=[5, 6, 7, 8]), [1])]), [3, 1, 1, 0, 6]),
    ],
)
def test_labels_are_read(data, expected):
    assert labels_of(data).tolist() == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (Pictures(), "its train is a value of type Pictures, which does not tell its labels"),
        (Pictures(targets=lambda: [1, 2, 3, 4]), "does not tell its labels; give it an attribute targets"),
        (Pictures(targets=[1, 2]), r"\(2,\) targets for 4 samples are no labels"),
        (Pictures(targets=torch.zeros(4)), "targets of type float32 are no labels"),
        ([{"x": 1, "y": 2}], "its train is a value of type list, which does not tell its labels"),
        (TensorDataset(torch.zeros(4, 2)), "targets of type float32 are no labels"),
    ],
)
def test_data_without_labels_are_refused(data, message):
    with pytest.raises(ValueError, match=message):
        labels_of(data)
