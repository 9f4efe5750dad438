"""Folders of pictures: what they hold, and what is said of those that cannot be trained on."""

import builtins
from pathlib import Path

import pytest
from PIL import Image

from planner.train import picture_folders

CLASSES = "cat", "dog"


def picture(path: Path, value: int, mode: str = "L", size: tuple[int, int] = (4, 3)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value if mode == "L" else (value, 0, 9)).save(path)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Two training pictures and a test picture of each class, of one grey level each."""
    for number, name in enumerate(CLASSES):
        picture(tmp_path / "train" / name / "a.png", 10 * number)
        picture(tmp_path / "train" / name / "b.png", 10 * number + 1)
        picture(tmp_path / "test" / name / "c.png", 10 * number + 2)
    return tmp_path


def test_grey_pictures_have_one_channel_and_labels_in_the_order_of_names(pictures: Path) -> None:
    found = picture_folders.read(str(pictures))
    assert found.input_shape == (3, 4, 1) and found.classes == 2
    assert found.train_images[:, 0, 0, 0].tolist() == [0, 1, 10, 11]
    assert (found.train_labels.tolist(), found.test_labels.tolist()) == ([0, 0, 1, 1], [0, 1])
    assert picture_folders.class_names(str(pictures)) == list(CLASSES)


def test_one_picture_in_colour_makes_all_rgb(pictures: Path) -> None:
    picture(pictures / "test" / "dog" / "d.png", 7, "RGB")
    found = picture_folders.read(str(pictures))
    assert found.input_shape == (3, 4, 3)
    assert found.train_images[-1, 0, 0].tolist() == [11, 11, 11]
    assert found.test_images[-1, 0, 0].tolist() == [7, 0, 9]


def test_a_picture_of_another_size_is_named(pictures: Path) -> None:
    picture(pictures / "test" / "cat" / "z.png", 0, size=(5, 3))
    with pytest.raises(ValueError, match=r"z\.png has 5 x 3 pixels, the first picture 4 x 3; scale all to one size"):
        picture_folders.read(str(pictures))


@pytest.mark.parametrize("keep", [0, 8, 40])
def test_a_truncated_picture_is_named(keep: int, pictures: Path) -> None:
    broken = pictures / "train" / "dog" / "a.png"
    broken.write_bytes(broken.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"dog/a\.png is damaged"):
        picture_folders.read(str(pictures))


def test_parts_with_other_classes_are_named(pictures: Path) -> None:
    picture(pictures / "test" / "bird" / "a.png", 0)
    with pytest.raises(ValueError, match="the same in both; in one of them only: bird"):
        picture_folders.read(str(pictures))


def test_a_class_without_pictures_is_named(pictures: Path) -> None:
    (pictures / "test" / "cat" / "c.png").unlink()
    with pytest.raises(ValueError, match="test/cat holds no picture"):
        picture_folders.read(str(pictures))


def test_without_pillow_the_remedy_is_named(pictures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without_pillow(name: str, *arguments: object, **options: object) -> object:
        if name == "PIL":
            raise ImportError(name)
        return importing(name, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_pillow)
    with pytest.raises(ValueError, match=r"pip install 'edge-cluster-planner\[images\]'"):
        picture_folders.read(str(pictures))
