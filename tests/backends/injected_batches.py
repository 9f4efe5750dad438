"""A member's images are all of one label, so that those of others can be told apart."""

from collections.abc import Callable
from typing import Any

import numpy as np

from backends.data.loader import ArraySamples, BatchLoader
from backends.protocol.frames import Share
from backends.streams.injection import InjectedBatches, SampleInjection, codec_of
from tests.backends.fakes import BATCH, CLASSES, images


class _AskedInjection(SampleInjection):
    """Notes what each step was to give."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.asked: list[Share | None] = []

    def begin_step(self, share: Share | None) -> None:
        self.asked.append(share)
        super().begin_step(share)


class LabelBatches(InjectedBatches):
    """Batches of the images of one label, and of those that others give.

    seen: for every batch, its samples of each label. asked: what each step was to give.
    before: called before each batch.
    """

    def __init__(self, label: int, before: Callable[[], Any] = lambda: None) -> None:
        pixels, labels = images(300, label)
        own = ArraySamples(pixels[labels == label], labels[labels == label])
        injection = _AskedInjection(codec_of(own, CLASSES), BATCH, 1.0, label, lambda _: "aside")
        super().__init__(BatchLoader(own, BATCH, label), injection)
        self.asked = injection.asked
        self.seen: list[tuple[int, ...]] = []
        self._before = before

    def __next__(self) -> tuple[np.ndarray, ...]:
        self._before()
        batch = super().__next__()
        self.seen.append(tuple(int((batch[1] == label).sum()) for label in range(CLASSES)))
        return batch
