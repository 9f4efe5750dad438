"""The order of a user's sampler, as far as a device has the samples."""

from typing import Any

import numpy as np
import torch

from backends.data.sample_order import SampleOrder
from backends.jobs.failure import refusal

#: A sampler that gives few samples may give a device none of its own in some epochs.
EPOCHS_TRIED = 100


class SamplerOrder(SampleOrder):
    """What a sampler gives, epoch by epoch, without the samples of other devices.

    positions: of the device's samples in the data set, which has ``count``. The orders are places
    among them. Each device draws for itself, with its own seed.
    """

    def __init__(self, sampler: Any, positions: np.ndarray, count: int, seed: int) -> None:
        self._sampler, self._seed = sampler, seed
        self._places = np.full(count, -1)
        self._places[positions] = np.arange(len(positions))
        self._ahead = np.empty(0, np.int64)
        self._epoch = 0

    def take(self, count: int) -> np.ndarray:
        while len(self._ahead) < count:
            self._ahead = np.concatenate([self._ahead, self.epoch()])
        taken, self._ahead = self._ahead[:count], self._ahead[count:]
        self.position += count
        return taken

    def put_back(self, positions: np.ndarray) -> None:
        super().put_back(positions)
        self._ahead = np.concatenate([positions, self._ahead])

    def epoch(self) -> np.ndarray:
        """All of the next epoch that has any, (n,) int64. Raises JobFailure where none has."""
        for _ in range(EPOCHS_TRIED):
            own: np.ndarray = self._places[self._drawn()]
            own = own[own >= 0]
            if len(own):
                return own
        raise refusal(
            "its sampler %s gives none of the samples of this device; let it give more, or train on fewer devices"
            % type(self._sampler).__name__
        )

    def _drawn(self) -> np.ndarray:
        """Positions in the data set, as the sampler gives them in the next epoch."""
        if hasattr(self._sampler, "set_epoch"):
            self._sampler.set_epoch(self._epoch)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed((self._seed + self._epoch * 1000003) % (1 << 63))
            given = np.array(list(self._sampler), np.int64)
        self._epoch += 1
        return given
