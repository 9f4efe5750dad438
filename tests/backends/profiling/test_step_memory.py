"""Peaks by batch size, on a made-up device: 100 bytes and 10 more for each sample, unless told."""

from collections.abc import Callable
from typing import cast

import pytest

from backends.frameworks.base import AcceleratorMemory
from backends.profiling.step_memory import MemoryProbe
from profilers.file_tree import Unavailable
from profilers.process_memory import PeakMemory
from profilers.records.steps import BatchMemory, StepMemory


class Device:
    """Stands for a process, and for the module of its framework."""

    def __init__(
        self,
        host: Callable[[int], int] = lambda size: 100 + 10 * size,
        gpu: Callable[[int], int] | None = None,
        gpu_bytes: int | None = None,
        shared: bool = False,
        hidden: bool = False,
    ) -> None:
        self._host, self._gpu, self._gpu_bytes, self._shared, self._hidden = host, gpu, gpu_bytes, shared, hidden
        self._size = 0
        self.tried: list[int] = []
        self.fails_from = 10**9

    def show(self) -> None:
        self._hidden = False

    # as the peaks of a process
    def restart(self) -> None:
        self._size = 0

    def bytes(self) -> int:
        if self._hidden:
            raise Unavailable("hidden")
        return self._host(self._size)

    # as a framework
    def forget_peak_memory(self) -> None:
        self._size = 0

    def accelerator_memory(self) -> AcceleratorMemory | None:
        return self._gpu and AcceleratorMemory(self._gpu(self._size), self._gpu_bytes, self._shared)

    def is_out_of_memory(self, error: BaseException) -> bool:
        return isinstance(error, MemoryError)

    def step_at(self, size: int) -> Callable[[], int]:
        def step() -> int:
            if size not in self.tried:
                self.tried.append(size)
            if size >= self.fails_from:
                raise MemoryError
            self._size = max(size, self._size)
            return size

        return step


def probe(device: Device, available: int = 10**9) -> MemoryProbe:
    return MemoryProbe(device, cast(PeakMemory, device), available)


@pytest.mark.parametrize(("available", "scarce"), [(247, False), (246, True)])
def test_memory_is_scarce_where_a_batch_takes_most_of_it_or_does_not_fit(available: int, scarce: bool) -> None:
    """Batch 16 takes 260 bytes; the process could have 100 more than are available."""
    device = Device()
    made = probe(device, available)
    made.largest(16, device.step_at)
    assert made.is_scarce_at(16) == scarce
    assert not made.is_scarce_at(8)
    device.fails_from = 32
    made.measure(32, device.step_at(32))
    assert made.is_scarce_at(32)


def test_sizes_are_measured_from_the_smallest_on() -> None:
    device = Device()
    made = probe(device)
    assert made.largest(16, device.step_at) == 16
    assert made.measure(32, device.step_at(32)) == 32
    assert made.found() == StepMemory(tuple(BatchMemory(size, 100 + 10 * size) for size in (4, 8, 16, 32)))


@pytest.mark.parametrize(("more", "fits"), [(90, True), (91, False)])
def test_there_is_room_for_what_is_left_beside_the_highest_peak(more: int, fits: bool) -> None:
    device = Device()
    made = probe(device, available=250)  # besides the 100 that the process has already
    made.largest(16, device.step_at)
    assert made.leaves_room_for(more) == fits


@pytest.mark.parametrize(("batch", "fails_from", "fits"), [(16, 16, 8), (16, 8, 4), (16, 4, 2), (7, 7, 3), (2, 9, 2)])
def test_a_size_that_runs_out_of_memory_is_noted_and_the_smaller_ones_count(
    batch: int, fails_from: int, fits: int
) -> None:
    device = Device()
    device.fails_from = fails_from
    made = probe(device)
    assert made.largest(batch, device.step_at) == fits
    found = made.found()
    assert fits in [each.batch for each in found.batches]
    assert all(each.batch < fails_from for each in found.batches)
    assert found.too_large is None if fits == batch else fails_from <= found.too_large <= 2 * fits + 1


def test_nothing_is_tried_that_the_growth_so_far_leaves_no_room_for() -> None:
    device = Device()
    made = probe(device, available=250)  # besides the 100 that the process has already
    assert made.largest(16, device.step_at) == 16
    assert made.measure(32, device.step_at(32)) is None
    assert device.tried == [4, 8, 16] and made.found().too_large == 32


def test_nor_on_the_accelerator_and_a_shared_one_takes_its_memory_from_the_host() -> None:
    own = Device(gpu=lambda size: 10 * size, gpu_bytes=100)
    assert probe(own).largest(16, own.step_at) == 8
    shared = Device(gpu=lambda size: 10 * size, shared=True)
    made = probe(shared, available=300)
    assert made.largest(16, shared.step_at) == 8  # 16 take 260 + 160 of the 400
    assert made.found().is_shared and shared.tried == [4, 8]


def test_where_not_even_two_samples_fit_there_is_nothing_to_profile() -> None:
    device = Device()
    device.fails_from = 1
    with pytest.raises(MemoryError, match="not even a batch of 2 fits into its memory"):
        probe(device).largest(16, device.step_at)
    with pytest.raises(MemoryError, match="not even a batch of 1 fits into its memory"):
        probe(device).largest(1, device.step_at)


def test_a_peak_that_cannot_be_measured_has_a_reason() -> None:
    device = Device(hidden=True)
    made = probe(device)
    made.largest(2, device.step_at)
    assert made.found() == StepMemory((BatchMemory(2, None),), reason="hidden")


def test_a_peak_that_was_hidden_before_the_first_step_is_of_no_matter() -> None:
    device = Device(hidden=True)
    made = probe(device)
    device.show()
    made.largest(2, device.step_at)
    assert made.found() == StepMemory((BatchMemory(2, 120),))
