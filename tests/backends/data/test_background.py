"""A loader that takes long is read ahead: the batches and their order stay as they were."""

import itertools
import threading

import numpy as np
import pytest

from backends.data.background import WORTH_S, BackgroundLoader
from backends.data.loader import ArraySamples, BatchSource
from backends.data.micro_batches import in_parts, parts_of
from backends.data.sequential_samples import SampleStream


class Counting(BatchSource):
    """Batches (number, size); ``took_s`` is what its clock says a read takes."""

    def __init__(self, took_s: float = 0.0, fails_at: int | None = None) -> None:
        self.batch = 2
        self.read = 0
        self.threads: list[int] = []
        self._took_s, self._now, self._fails_at = took_s, 0.0, fails_at

    def __next__(self) -> tuple[int, int]:
        self.threads.append(threading.get_ident())
        self._now += self._took_s
        self.read += 1
        if self.read == self._fails_at:
            raise OSError("no such image")
        return self.read, self.batch

    def clock(self) -> float:
        return self._now

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("took_s", [WORTH_S / 2, WORTH_S * 2])
def test_batches_come_in_their_order(took_s) -> None:
    source = Counting(took_s)
    loader = BackgroundLoader(source, source.clock)
    assert list(itertools.islice(loader, 5)) == [(number, 2) for number in range(1, 6)]


def test_only_a_slow_source_is_read_by_another_thread() -> None:
    for took_s, others in ((WORTH_S / 2, False), (WORTH_S * 2, True)):
        source = Counting(took_s)
        loader = BackgroundLoader(source, source.clock)
        for _ in range(3):
            next(loader)
        assert bool(set(source.threads) - {threading.get_ident()}) == others


class Late:
    """A clock by which every read is worth a thread."""

    now_s = 0.0

    def __call__(self) -> float:
        self.now_s += WORTH_S * 2
        return self.now_s


@pytest.mark.parametrize("micro_batch", [0, 3])
@pytest.mark.parametrize(
    "source",
    [
        lambda: ArraySamples(np.arange(23)).loader(2, seed=1),
        lambda: SampleStream(lambda: iter(range(23)), list).loader(2),
    ],
)
def test_no_sample_is_left_out_when_the_size_of_batches_changes(source, micro_batch) -> None:
    def drawn(loader: BatchSource) -> list[int]:
        found = []
        for loader.batch in (2, 2, 5, 5, 1, 4, 4, 7, 7):
            parts = [part.batch for part in parts_of(next(loader))]
            found += [int(sample) for part in parts for sample in np.ravel(part)]
        return found

    assert drawn(BackgroundLoader(in_parts(source(), micro_batch), Late())) == drawn(source())


def test_a_loader_that_is_closed_ends_its_source_when_the_read_under_way_is_done() -> None:
    source = Counting(WORTH_S * 2)
    loader = BackgroundLoader(source, source.clock)
    next(loader)
    loader.close()
    assert (source.read, source.closed) == (2, True)


def test_an_error_of_the_source_comes_with_the_batch_that_it_spoils() -> None:
    source = Counting(WORTH_S * 2, fails_at=3)
    loader = BackgroundLoader(source, source.clock)
    assert [next(loader)[0] for _ in range(2)] == [1, 2]
    with pytest.raises(OSError, match="no such image"):
        next(loader)
