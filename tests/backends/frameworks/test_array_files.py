"""Arrays that memory does not hold are one array in a file."""

from pathlib import Path

import numpy as np

from backends.frameworks.array_files import on_disk


def test_arrays_lie_one_after_the_other_in_a_file_without_a_name(tmp_path: Path) -> None:
    given = np.arange(6, dtype=np.float64).reshape(2, 3), np.full(4, 7, np.float32), np.empty(0, np.float32)
    found = on_disk(iter(given), str(tmp_path))
    assert isinstance(found, np.memmap) and found.dtype == np.float32
    np.testing.assert_array_equal(found, [0, 1, 2, 3, 4, 5, 7, 7, 7, 7])
    assert not list(tmp_path.iterdir())
    found[0] = 9.0
    assert found[0] == 9.0


def test_nothing_is_an_array_without_elements() -> None:
    assert on_disk([], None).shape == on_disk([np.empty(0, np.float32)], None).shape == (0,)
