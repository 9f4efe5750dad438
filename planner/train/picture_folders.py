"""Pictures in folders named for their classes: train/CLASS and test/CLASS."""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from backends.data.dataset import Dataset, of_arrays
from planner.train import pictures

PARTS = "train", "test"
#: So many files are named in a note.
NAMED = 3


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


def read(directory: str, on_note: Callable[[str], None] = lambda note: None) -> Dataset:
    """The images, uint8 (count, height, width, 1 or 3): grey where all are, else RGB.

    on_note: told what is left out of the folders.
    Raises ValueError naming the picture that is damaged or of another size, or what is missing.
    """
    names = class_names(directory)
    image_module = pictures.import_pillow(directory)
    found = [_Part(os.path.join(directory, part), [], [], [], []) for part in PARTS]
    for part in found:
        part.skipped.extend(_files(part.folder))
        for number, name in enumerate(names):
            part.read_class(image_module, number, name)
    faded = pictures.faded([pixels for part in found for _, pixels in part.images])
    for note in (*_notes(directory, found), *([f"{directory}: {faded}"] if faded else [])):
        on_note(note)
    _require_one_size(found)
    images = _alike([pixels for part in found for pixels in part.images])
    trained = len(found[0].images)
    stacked = np.stack(images[:trained]), np.stack(images[trained:])
    labels = [np.array(part.labels, np.int64) for part in found]
    return of_arrays(directory, (stacked[0], labels[0], stacked[1], labels[1]))


class _Part(NamedTuple):
    """What is found in ``train`` or ``test``: images with their paths and labels.

    skipped: names of what is no picture; cut: paths of pictures with more than the first frame.
    """

    folder: str
    images: list[tuple[str, np.ndarray]]
    labels: list[int]
    skipped: list[str]
    cut: list[str]

    def read_class(self, image_module: Any, number: int, name: str) -> None:
        folder, before = os.path.join(self.folder, name), len(self.images)
        self.skipped.extend(os.path.join(folder, inner) for inner in _folders(folder))
        for path in _files(folder):
            picture = pictures.read(image_module, path) if os.path.isfile(path) else None
            if picture is None:
                self.skipped.append(path)
                continue
            self.images.append((path, picture.pixels))
            self.labels.append(number)
            self.cut.extend([path] * picture.has_more_frames)
        if len(self.images) == before:
            raise ValueError(f"{folder} holds no picture that Pillow reads")


def _require_one_size(parts: list[_Part]) -> None:
    _, first = parts[0].images[0]
    for path, pixels in (image for part in parts for image in part.images):
        if pixels.shape[:2] != first.shape[:2]:
            raise ValueError(
                f"{path} has {pixels.shape[1]} x {pixels.shape[0]} pixels, the first picture "
                f"{first.shape[1]} x {first.shape[0]}; scale all to one size"
            )


def _alike(images: list[tuple[str, np.ndarray]]) -> list[np.ndarray]:
    """All as bytes, and in RGB unless each is grey."""
    as_bytes = pictures.as_bytes([pixels for _, pixels in images])
    channels = max(pixels.shape[2] for pixels in as_bytes)
    return [np.broadcast_to(pixels, (*pixels.shape[:2], channels)) for pixels in as_bytes]


def _notes(directory: str, parts: list[_Part]) -> list[str]:
    found = (
        ([path for part in parts for path in part.skipped], "left out, for they are no pictures in a class's folder"),
        ([path for part in parts for path in part.cut], "pictures of several frames, of which the first is used"),
    )
    return [f"{directory}: {len(paths)} {text}: {_listed(directory, paths)}" for paths, text in found if paths]


def _listed(directory: str, paths: list[str]) -> str:
    more = len(paths) - NAMED
    return ", ".join(os.path.relpath(path, directory) for path in paths[:NAMED]) + f" and {more} more" * (more > 0)


def _folders(part: str) -> list[str]:
    return [name for name in _visible(part) if os.path.isdir(os.path.join(part, name))]


def _files(folder: str) -> list[str]:
    paths = (os.path.join(folder, name) for name in _visible(folder))
    return [path for path in paths if not os.path.isdir(path)]


def _visible(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))
