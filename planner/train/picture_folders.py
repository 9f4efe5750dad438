"""Pictures in folders named for their classes: train/CLASS/*.png and test/CLASS/*.png, or JPEG."""

import os
from typing import Any

import numpy as np

from backends.data.dataset import Dataset, of_arrays

PARTS = "train", "test"
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp")


def present(directory: str) -> bool:
    """Whether the directory has both parts."""
    return all(os.path.isdir(os.path.join(directory, part)) for part in PARTS)


def class_names(directory: str) -> list[str]:
    """Names of the classes, which are numbered in this order: sorted.

    Raises ValueError where the two parts hold other classes, or none.
    """
    train, test = (_folders(os.path.join(directory, part)) for part in PARTS)
    if train != test or not train:
        only = ", ".join(sorted(set(train) ^ set(test))) or "no folder"
        raise ValueError(
            f"{directory}: train and test need a folder for each class, the same in both; in one of them only: {only}"
        )
    return train


def read(directory: str) -> Dataset:
    """The images, uint8 (count, height, width, 1 or 3): grey where all are, else RGB.

    Raises ValueError naming the picture that is damaged or of another size, or what is missing.
    """
    names = class_names(directory)
    image_module = _pillow(directory)
    files = [_files(os.path.join(directory, part), names) for part in PARTS]
    mode = "L" if all(_is_grey(image_module, path) for part in files for path, _ in part) else "RGB"
    arrays: list[np.ndarray] = []
    shape: tuple[int, ...] | None = None
    for part in files:
        images = []
        for path, _ in part:
            pixels = _pixels(image_module, path, mode)
            shape = shape or pixels.shape
            if pixels.shape != shape:
                raise ValueError(
                    f"{path} has {pixels.shape[1]} x {pixels.shape[0]} pixels, the first picture "
                    f"{shape[1]} x {shape[0]}; scale all to one size"
                )
            images.append(pixels)
        arrays += [np.stack(images), np.array([number for _, number in part], np.int64)]
    return of_arrays(directory, tuple(arrays))


def _pillow(directory: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise ValueError(
            f"{directory} holds pictures, and Pillow is not installed here: pip install 'edge-cluster-planner[images]'"
        ) from None
    return Image


def _folders(part: str) -> list[str]:
    visible = (name for name in os.listdir(part) if not name.startswith("."))
    return sorted(name for name in visible if os.path.isdir(os.path.join(part, name)))


def _files(part: str, names: list[str]) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for number, name in enumerate(names):
        folder = os.path.join(part, name)
        pictures = [file for file in sorted(os.listdir(folder)) if file.lower().endswith(ENDINGS)]
        if not pictures:
            raise ValueError(f"{folder} holds no picture ({', '.join(ENDINGS)})")
        found += [(os.path.join(folder, file), number) for file in pictures]
    return found


def _is_grey(image_module: Any, path: str) -> bool:
    try:
        with image_module.open(path) as picture:
            return picture.mode in ("1", "L", "LA", "I", "I;16", "F")
    except OSError as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _pixels(image_module: Any, path: str, mode: str) -> np.ndarray:
    try:
        with image_module.open(path) as picture:
            pixels = np.asarray(picture.convert(mode), np.uint8)
    except (OSError, SyntaxError) as error:  # Pillow says SyntaxError of some broken PNG files
        raise ValueError(f"{path} is damaged: {error}") from None
    return pixels[..., None] if mode == "L" else pixels
