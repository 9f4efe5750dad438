"""A member's images are all of one label, so that those of others can be told apart."""

from collections.abc import Callable
from typing import Any

import numpy as np

from backends.data.loader import ArraySamples, BatchLoader
from backends.protocol.frames import Share
from backends.streams.injection import InjectedBatches, SampleInjection, codec_of
from tests.backends.fakes import BATCH, CLASSES, images


class LabelBatches(InjectedBatches):
    """Batches of the images of one label, and of those that others give.

    seen: for every batch, its samples of each label. asked: what each step was to give.
    before: called before each batch.
    """

    def __init__(self, label: int, before: Callable[[], Any] = lambda: None) -> None:
        pixels, labels = images(300, label)
        own = ArraySamples(pixels[labels == label], labels[labels == label])
        injection = SampleInjection(codec_of(own, CLASSES), BATCH, 1.0, label, lambda _: "aside")
        super().__init__(BatchLoader(own, BATCH, label), injection)
        self.asked: list[Share | None] = []
        begin_step = injection.begin_step
        injection.begin_step = lambda share: (self.asked.append(share), begin_step(share))[1]  # type: ignore
        self.seen: list[tuple[int, ...]] = []
        self._before = before

    def __next__(self) -> tuple[np.ndarray, ...]:
        self._before()
        batch = super().__next__()
        self.seen.append(tuple(int((batch[1] == label).sum()) for label in range(CLASSES)))
        return batch
