"""Arrays of a pickle are taken as bytes of a known shape, or not at all."""

import io
import pickle

import numpy as np
import pytest

from backends.data import pickled_arrays
from backends.data.pickled_arrays import PickledArray

ROWS = np.arange(12, dtype=np.uint8).reshape(4, 3)


def loaded(value):
    return pickled_arrays.load(io.BytesIO(pickle.dumps(value, protocol=3)))


def test_an_array_comes_back_as_it_was():
    found = loaded({"data": ROWS, "labels": [1, 2]})
    assert found["labels"] == [1, 2]
    np.testing.assert_array_equal(found["data"].rows(3), ROWS)


@pytest.mark.parametrize(
    "value",
    [ROWS.astype(np.float32), ROWS.astype(np.int8), np.asfortranarray(ROWS), ROWS.reshape(2, 6), ROWS.ravel()],
    ids=["float32", "int8", "fortran", "other columns", "one dimension"],
)
def test_other_arrays_are_no_rows(value):
    assert loaded(value).rows(3) is None


def test_an_array_may_be_empty():
    assert loaded(ROWS[:0]).rows(3).shape == (0, 3)


@pytest.mark.parametrize(
    "state",
    [
        None, (), (1, 2, 3, 4, 5), (1, (10**9, 3), "dtype", False, b"abc"), (1, (1, 3), None, False, b"abc"),
        (1, (1, 3), None, False, "\u1234bc"), {"shape": (1, 3)},
    ],
    ids=str,
)  # fmt: skip
def test_a_state_that_no_array_has_is_no_rows(state):
    made = PickledArray()
    made.__setstate__(state)
    assert made.rows(3) is None


def test_more_rows_than_there_are_bytes_are_none():
    found = loaded(ROWS)
    version, shape, dtype, is_fortran, content = found._state
    found.__setstate__((version, (5, 3), dtype, is_fortran, content))
    assert found.rows(3) is None
    found.__setstate__((version, shape, dtype, is_fortran, content + b"x"))
    assert found.rows(3) is None


def test_names_that_no_array_needs_are_refused():
    with pytest.raises(pickle.UnpicklingError, match="it wants builtins.print, which data have no use for"):
        pickled_arrays.load(io.BytesIO(pickle.dumps(print, protocol=4)))
