"""Arrays are described, and room for them is made, but not for anything else."""

import numpy as np
import pytest

from backends.network.framing import WireError
from backends.training.array_transfer import allocate, allocate_named, describe, describe_named, flatten

ARRAYS = (np.arange(3, dtype=np.float32), np.array([2.0]))


def kinds(arrays):
    return [(array.dtype, array.shape) for array in arrays]


def test_arrays_are_allocated_as_they_are_described() -> None:
    assert kinds(allocate(describe(ARRAYS), 1000)) == kinds(ARRAYS)


def test_named_arrays_are_allocated_as_they_are_described() -> None:
    state = {"own": ARRAYS, "state": ARRAYS[:1], "none": ()}
    made = allocate_named(describe_named(state), 1000)
    assert list(made) == list(state)
    assert kinds(flatten(made)) == kinds(flatten(state)) == kinds(ARRAYS + ARRAYS[:1])


@pytest.mark.parametrize(
    "description", [[["<f4", [1000]]], [["O", [1]]], [["<f4", [-1]]], "no", [["<f4"]], None, [["x", [1]]]]
)
def test_a_description_of_anything_but_numbers_or_of_too_many_is_refused(description: object) -> None:
    with pytest.raises(WireError, match="cannot receive arrays of"):
        allocate(description, 1000)
    with pytest.raises(WireError, match="cannot receive arrays of"):
        allocate_named([["own", description]], 1000)


@pytest.mark.parametrize("description", [None, 7, [["own"]], ["own"]])
def test_a_description_without_names_is_refused(description: object) -> None:
    with pytest.raises(WireError, match="cannot receive arrays of"):
        allocate_named(description, 1000)
