"""Arrays of a pickle are read without numpy, which believes what a file says of an array.

A damaged or hostile file can make numpy read any memory, or end the process.
"""

import pickle
from typing import Any, BinaryIO, Dict, Optional, Tuple

import numpy as np


class PickledArray:
    """What a pickle says of an array, unchecked."""

    def __init__(self, *_: Any) -> None:
        self._state: Any = None

    def __setstate__(self, state: Any) -> None:
        self._state = state

    def rows(self, columns: int) -> Optional[np.ndarray]:
        """The array as (count, columns) uint8; None where it is another one, or none."""
        if not isinstance(self._state, tuple) or len(self._state) != 5:
            return None
        _, shape, dtype, is_fortran, content = self._state
        if isinstance(content, str):  # of Python 2, whose text was bytes
            try:
                content = content.encode("latin1")
            except UnicodeEncodeError:
                return None
        if not isinstance(dtype, _Dtype) or dtype.name not in ("u1", "|u1") or is_fortran:
            return None
        if not isinstance(content, bytes) or shape != (len(content) // columns, columns):
            return None
        return np.frombuffer(content, np.uint8).reshape(shape) if len(content) % columns == 0 else None


class _Dtype:
    """The type of an array's elements. name: as numpy has it; None where none is given."""

    def __init__(self, *arguments: Any) -> None:
        self.name = arguments[0] if arguments else None

    def __setstate__(self, state: Any) -> None:
        """The order of bytes, which single ones have none of."""


def _new_array(*_: Any) -> PickledArray:
    return PickledArray()


class _Unpickler(pickle._Unpickler):
    """Admits arrays and built-in containers only, for a pickle may name any function to call.

    These are the names that an array needs, under the old and the new path of numpy's core. It is
    the one in Python, whose memo is a dictionary: that in C makes room for the largest number that
    a damaged file names.
    """

    _ADMITTED: Dict[Tuple[str, str], Any] = {
        ("numpy.core.multiarray", "_reconstruct"): _new_array,
        ("numpy._core.multiarray", "_reconstruct"): _new_array,
        ("numpy", "ndarray"): PickledArray,
        ("numpy", "dtype"): _Dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ADMITTED:
            raise pickle.UnpicklingError("it wants %s.%s, which data have no use for" % (module, name))
        return self._ADMITTED[module, name]


def load(source: BinaryIO) -> Any:
    """The content of a pickle, with a ``PickledArray`` for every array.

    Raises EOFError where it ends too early, and whatever a damaged one makes Python raise.
    """
    return _Unpickler(source, encoding="latin1").load()
