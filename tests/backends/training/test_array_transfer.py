"""Arrays are described, and room for them is made, but not for anything else."""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from backends.network.framing import WireError
from backends.protocol.frames import ArraySpec, NamedArrays
from backends.protocol.json_messages import decode, encode_list
from backends.training.array_transfer import allocate, describe
from tests.mutations import MUTATIONS, mutated

ARRAYS = (np.arange(3, dtype=np.float32), np.array([2.0]))


def test_arrays_are_allocated_as_they_are_described() -> None:
    made = allocate(describe(ARRAYS), 1000)
    assert [(array.dtype, array.shape) for array in made] == [(array.dtype, array.shape) for array in ARRAYS]


@pytest.mark.parametrize("spec", [("<f4", (1000,)), ("O", (1,)), ("<f4", (-1,)), ("x", (1,))])
def test_arrays_of_anything_but_numbers_or_of_too_many_are_refused(spec: tuple[str, tuple[int, ...]]) -> None:
    with pytest.raises(WireError, match="cannot receive arrays of"):
        allocate([ArraySpec(*spec)], 1000)


@MUTATIONS
@given(mutated(json.loads(json.dumps(encode_list(NamedArrays({"tx2": describe(ARRAYS), "nano": ()}))))))
def test_room_is_made_for_what_fits_or_the_message_is_refused(head: Any) -> None:
    with suppress(ValueError, WireError):
        for specs in decode(head, [NamedArrays]).arrays.values():
            assert sum(array.nbytes for array in allocate(specs, 1000)) <= 1000
