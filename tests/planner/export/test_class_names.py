"""Class names: given by the operator, found in the data set, or numbers."""

from pathlib import Path

import pytest

from planner.errors import ExportError
from planner.export.class_names import class_names


def test_without_names_classes_are_numbers(tmp_path: Path) -> None:
    assert class_names(None, str(tmp_path), 3) == ("0", "1", "2")


def test_names_are_given_in_one_text_or_in_a_file(tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("cat\nsmall dog\nbird\n")
    assert class_names("cat, small dog,bird", "gone", 3) == ("cat", "small dog", "bird")
    assert class_names(str(names), "gone", 3) == ("cat", "small dog", "bird")


def test_cifar_10_brings_its_names_along(tmp_path: Path) -> None:
    (tmp_path / "batches.meta.txt").write_text("airplane\nautomobile\n\n")
    assert class_names(None, str(tmp_path), 2) == ("airplane", "automobile")
    assert class_names(None, str(tmp_path), 3) == ("0", "1", "2")
    assert class_names("a,b", str(tmp_path), 2) == ("a", "b")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("a,b", r"--classes a,b: 2 names, the model has 3 outputs"),
        ("a,,b", r"--classes a,,b: 2 names, the model has 3 outputs"),
        ("none.txt", r"--classes none.txt: no such file; give a file with a name a line, or names as a,b,c"),
        ("cat", r"--classes cat: no such file"),
    ],
)
def test_names_that_do_not_fit_are_refused(given: str, problem: str) -> None:
    with pytest.raises(ExportError, match=problem):
        class_names(given, "gone", 3)


def test_of_folders_of_pictures_they_are_the_folders(tmp_path: Path) -> None:
    for part in ("train", "test"):
        for name in ("dog", "cat"):
            (tmp_path / part / name).mkdir(parents=True)
    assert class_names(None, str(tmp_path), 2) == ("cat", "dog")
    (tmp_path / "test" / "bird").mkdir()
    with pytest.raises(ExportError, match="bird"):
        class_names(None, str(tmp_path), 2)
