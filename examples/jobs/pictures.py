"""A classifier of the pictures in a folder: train/CLASS/*.png and test/CLASS/*.png.

The folder is where the fleet file says, key ``data`` of a device, or ``pictures`` beside this file.
"""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import Dataset

SIDE = 28


class Folder(Dataset):
    """Pictures, scaled to one size, with the number of their class."""

    def __init__(self, path):
        self.classes = sorted(each.name for each in path.iterdir() if each.is_dir())
        self.files = [
            (file, number) for number, name in enumerate(self.classes) for file in sorted((path / name).glob("*.png"))
        ]
        self.targets = [number for _, number in self.files]  # for --partition, which opens no picture

    def __len__(self):
        return len(self.files)

    def __getitem__(self, at):
        file, number = self.files[at]
        with Image.open(file) as picture:
            pixels = np.asarray(picture.convert("L").resize((SIDE, SIDE)), np.float32)
        return torch.from_numpy(pixels / 255)[None], number


def job():
    """A network of two convolutions."""
    folder = Path(os.environ.get("PLANNER_DATA", "pictures"))
    train, test = Folder(folder / "train"), Folder(folder / "test")
    return SimpleNamespace(
        model=nn.Sequential(
            nn.Conv2d(1, 8, 5, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(), nn.Flatten(),
            nn.Linear(16 * 5 * 5, len(train.classes)),
        ),
        train=train,
        test=test,
        loss=nn.functional.cross_entropy,
        metrics={"accuracy": lambda outputs, labels: (outputs.argmax(1) == labels).float().mean()},
        classes=train.classes,
    )  # fmt: skip
