"""An order says which samples a member draws next, by their positions."""

import abc
from typing import Iterator, Sequence

import numpy as np


class SampleOrder(abc.ABC):
    """The positions of samples, without end.

    position: samples drawn so far; may be set.
    """

    position = 0

    @abc.abstractmethod
    def take(self, count: int) -> np.ndarray:
        """The next positions, (count,) int64."""

    def put_back(self, positions: np.ndarray) -> None:
        """The last positions, (n,) int64, come again."""
        self.position -= len(positions)


class ShuffledOrder(SampleOrder):
    """A new seeded order each epoch."""

    def __init__(self, samples: int, seed: int) -> None:
        self._samples, self._seed = samples, seed
        self._epoch, self._order = -1, np.empty(0, np.int64)

    def take(self, count: int) -> np.ndarray:
        chosen = np.empty(count, np.int64)
        filled = 0
        while filled < count:
            epoch, offset = divmod(self.position, self._samples)
            part = self._epoch_order(epoch)[offset : offset + count - filled]
            chosen[filled : filled + len(part)] = part
            filled += len(part)
            self.position += len(part)
        return chosen

    def _epoch_order(self, epoch: int) -> np.ndarray:
        if epoch != self._epoch:
            self._epoch = epoch
            self._order = np.random.RandomState([self._seed, epoch]).permutation(self._samples)
        return self._order


class LaneOrder(SampleOrder):
    """Samples that follow one another: each sample of a batch follows that of the batch before it.

    The samples are cut into as many lanes as a batch has samples, of equal length; what is left
    over at the ends of lanes is not drawn.
    """

    def __init__(self, samples: int) -> None:
        self._samples = samples

    def take(self, count: int) -> np.ndarray:
        at = self.position // count % max(1, self._samples // count)
        self.position += count
        return lane_starts(self._samples, count) + at


def stretch(samples: int, weights: Sequence[float], member: int) -> np.ndarray:
    """The positions of a member's samples that follow one another, (n,) int64."""
    ends = np.round(np.cumsum((0.0,) + tuple(weights)) / sum(weights) * samples).astype(np.int64)
    return np.arange(ends[member], ends[member + 1])


def lane_starts(samples: int, lanes: int) -> np.ndarray:
    """Where each lane begins, (lanes,) int64; some have a sample more than others."""
    return np.arange(lanes) * samples // lanes


def all_in_lanes(samples: int, lanes: int) -> Iterator[np.ndarray]:
    """All positions once, in batches of one of each lane; the last batch may have fewer."""
    at = lane_starts(samples, min(samples, lanes))
    ends = np.append(at[1:], samples)
    while len(at):
        yield at
        at, ends = at[at + 1 < ends] + 1, ends[at + 1 < ends]
