"""The peak memory of a step is measured by batch size, from the smallest on.

Linux ends a process that asks for more memory than there is, and with it the whole profile. A size
is therefore tried only where the growth from one size to the next leaves room for it.
"""

from typing import Any, Callable, List, Optional, Tuple, TypeVar

from backends.profiling.batch_curve import LEAST, smaller_sizes
from profilers import device_facts
from profilers.file_tree import FileTree, Unavailable
from profilers.process_memory import PeakMemory
from profilers.records.steps import BatchMemory, StepMemory

#: Steps that show the peak: the second has what the first has left.
STEPS = 2
#: Share of main memory up to which a size is tried: no plan takes more of it, and Linux ends a
#: process that the line through two peaks has deceived.
TRIED = 0.9
#: Share of the memory from which on a run, which keeps more than a step, may not fit.
MOST = 0.75

Result = TypeVar("Result")


class MemoryProbe:
    """Measures the peaks of the steps of one replica.

    backend: the module of its framework.
    host: peaks of this process.
    available_bytes: of main memory, that the process could have besides what it has.
    """

    def __init__(self, backend: Any, host: PeakMemory, available_bytes: int) -> None:
        self._backend = backend
        self._host = host
        self._found: List[BatchMemory] = []
        self._too_large: Optional[int] = None
        self._begin()
        self._available_bytes = available_bytes + (self._host_bytes() or 0)
        self._reason: Optional[str] = None
        told = backend.accelerator_memory()
        self._is_shared = told is not None and told.is_shared
        self._accelerator_available_bytes = None if told is None else told.available_bytes

    @classmethod
    def of_this_process(cls, backend: Any) -> "MemoryProbe":
        """A probe of this process on this device."""
        available_bytes = device_facts.memory(FileTree(), FileTree("/")).available_bytes
        return cls(backend, PeakMemory(FileTree("/")), available_bytes)

    def largest(self, batch: int, step_at: Callable[[int], Callable[[], Any]]) -> int:
        """The largest that fits of a batch size, its half and its quarter, else a smaller one.

        step_at: gives a function that makes a step at a size.
        Raises MemoryError where not even the smallest fits.
        """

        def fits(size: int) -> bool:
            step = step_at(size)
            return self.measure(size, lambda: [step() for _ in range(STEPS)]) is not None

        sizes = sorted(smaller_sizes(batch)) + [batch]
        size = sizes[0]
        while not fits(size):
            if size <= LEAST:
                raise MemoryError("not even a batch of %d fits into its memory" % size)
            size = max(LEAST, size // 2)
        for larger in sizes[1:] if size == sizes[0] else []:
            if not fits(larger):
                break
            size = larger
        return size

    def measure(self, size: int, work: Callable[[], Result]) -> Optional[Result]:
        """Do the work of a batch size and take its peak; None where the memory is too small."""
        if not self._leaves_room(size):
            self._too_large = size
            return None
        self._begin()
        try:
            result = work()
        except Exception as error:
            if not self._backend.is_out_of_memory(error):
                raise
            self._too_large = size
        else:
            self._found.append(self._peak(size))
            return result
        self._begin()  # outside of the handler, where the exception holds no arrays any more
        return None

    def leaves_room_for(self, more_bytes: int) -> bool:
        """Whether the host has room for more than any of the measured steps took."""
        return max((each.host_bytes or 0 for each in self._found), default=0) + more_bytes <= self._available_bytes

    def is_scarce_at(self, size: int) -> bool:
        """Whether a batch size took most of a memory, or did not fit."""
        if self._too_large is not None and self._too_large <= size:
            return True
        known = [each for each in self._found if each.batch <= size]
        host = max([each.host_bytes or 0 for each in known] or [0])
        accelerator = max([each.accelerator_bytes or 0 for each in known] or [0])
        if self._is_shared:
            host += accelerator
        room = self._accelerator_available_bytes
        return host > MOST * self._available_bytes or (room is not None and accelerator > MOST * room)

    @property
    def available_bytes(self) -> float:
        """What the process could have in all of the memory in which the model's arrays are."""
        room = self._accelerator_available_bytes
        return float(self._available_bytes if room is None or self._is_shared else room)

    @property
    def used_bytes(self) -> int:
        """What it has had of that since the probe began."""
        told = self._backend.accelerator_memory()
        on_accelerator = 0 if told is None else told.peak_bytes or 0
        if told is not None and not self._is_shared:
            return on_accelerator
        return on_accelerator + (self._host_bytes() or 0)

    def resting_bytes(self) -> Optional[int]:
        """What the process has between two steps; None where that is unknown."""
        self._begin()
        return self._host_bytes()

    @property
    def peaks(self) -> Tuple[BatchMemory, ...]:
        """Those that were measured, by batch size."""
        return tuple(sorted(self._found, key=lambda each: each.batch))

    def found(self) -> StepMemory:
        """What was measured."""
        return StepMemory(
            self.peaks,
            self._accelerator_available_bytes,
            self._is_shared,
            self._too_large,
            self._reason,
        )

    def _begin(self) -> None:
        self._backend.forget_peak_memory()
        self._host.restart()

    def _peak(self, size: int) -> BatchMemory:
        told = self._backend.accelerator_memory()
        return BatchMemory(size, self._host_bytes(), None if told is None else told.peak_bytes)

    def _host_bytes(self) -> Optional[int]:
        try:
            return self._host.bytes()
        except Unavailable as error:
            self._reason = str(error)
            return None

    def _leaves_room(self, size: int) -> bool:
        if self._too_large is not None and size >= self._too_large:
            return False
        host = _expected([(each.batch, each.host_bytes) for each in self._found], size)
        accelerator = _expected([(each.batch, each.accelerator_bytes) for each in self._found], size)
        if self._is_shared:
            host, accelerator = host + accelerator, 0.0
        room = self._accelerator_available_bytes
        return host <= TRIED * self._available_bytes and (room is None or accelerator <= room)


def _expected(points: List[Tuple[int, Optional[int]]], size: int) -> float:
    """Bytes at a size by the line through the two largest sizes below; 0 where that is unknown."""
    known = sorted((batch, used) for batch, used in points if used is not None and batch < size)
    if len(known) < 2:
        return 0.0
    (small, least), (large, most) = known[-2:]
    return most + max(0, most - least) * (size - large) / float(large - small)
