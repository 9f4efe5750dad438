"""Arrays are described, and room for them is made, but not for anything else."""

import numpy as np
import pytest

from backends.network.framing import WireError
from backends.protocol.frames import ArraySpec
from backends.training.array_transfer import allocate, describe

ARRAYS = (np.arange(3, dtype=np.float32), np.array([2.0]))


def test_arrays_are_allocated_as_they_are_described() -> None:
    made = allocate(describe(ARRAYS), 1000)
    assert [(array.dtype, array.shape) for array in made] == [(array.dtype, array.shape) for array in ARRAYS]


@pytest.mark.parametrize("spec", [("<f4", (1000,)), ("O", (1,)), ("<f4", (-1,)), ("x", (1,))])
def test_arrays_of_anything_but_numbers_or_of_too_many_are_refused(spec: tuple[str, tuple[int, ...]]) -> None:
    with pytest.raises(WireError, match="cannot receive arrays of"):
        allocate([ArraySpec(*spec)], 1000)
