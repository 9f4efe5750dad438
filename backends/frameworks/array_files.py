"""Arrays that are too many for the memory of a device lie in temporary files."""

import os
import tempfile
from typing import Iterable, Optional

import numpy as np


def on_disk(arrays: Iterable[np.ndarray], folder: Optional[str]) -> np.ndarray:
    """The arrays one after the other, (n,) float32, in a nameless file that ends with the result.

    One of them at a time is in memory. folder: of the file; None for that of temporary files.
    Raises OSError where the disk is full.
    """
    with tempfile.TemporaryFile(dir=folder) as stream:
        for each in arrays:
            np.ascontiguousarray(each, np.float32).tofile(stream)
            os.fsync(stream.fileno())  # the system can drop no page that it has yet to write
        if not stream.tell():
            return np.empty(0, np.float32)
        return np.memmap(stream, np.float32, "r+")
