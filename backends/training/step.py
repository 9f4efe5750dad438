"""A step computes a gradient of a replica and times it, alike for every kind of member."""

import time
from typing import Tuple

import numpy as np

from backends.data.dataset import BatchLoader
from backends.frameworks.base import Replica
from backends.protocol.frames import Scores

#: Images evaluated at once: enough to use an accelerator fully, few enough for a small board.
EVALUATION_BATCH = 128

#: Images and labels.
TestSet = Tuple[np.ndarray, np.ndarray]


def step(
    replica: Replica, batches: BatchLoader, slowdown: float, rate: float, weight_decay: float = 0.0
) -> Tuple[float, float, float]:
    """Compute one gradient into the host buffers; return loss, gradient_s and copy_s.

    slowdown: factor by which computing is stretched.
    """
    began = time.perf_counter()
    loss = replica.gradient(*next(batches), rate=rate, weight_decay=weight_decay)
    stretch(time.perf_counter() - began, slowdown)
    computed = time.perf_counter()
    replica.fetch()
    return loss, computed - began, time.perf_counter() - computed


def stretch(seconds: float, slowdown: float) -> None:
    """Emulate a device ``slowdown`` times slower by sleeping for the rest of its time."""
    if slowdown > 1.0:
        time.sleep(seconds * (slowdown - 1.0))


def evaluate(replica: Replica, images: np.ndarray, labels: np.ndarray) -> Scores:
    """Mean loss and accuracy on a test set, and seconds. Raises ValueError where that is empty."""
    require_test_images(labels)
    began = time.perf_counter()
    loss, right = 0.0, 0
    for start in range(0, len(labels), EVALUATION_BATCH):
        part = slice(start, start + EVALUATION_BATCH)
        part_loss, part_right = replica.evaluate(images[part], labels[part])
        loss += part_loss
        right += part_right
    return Scores(loss / len(labels), right / len(labels), time.perf_counter() - began)


def require_test_images(labels: np.ndarray) -> None:
    """Raises ValueError for an empty test set."""
    if not len(labels):
        raise ValueError("the test set is empty: there is nothing to evaluate the model on; give at least one image")
