"""A source delivers the samples of a stream in order, from any offset on."""

import abc
from typing import List, Mapping, NamedTuple, Optional


class StreamRecord(NamedTuple):
    """One sample as it arrives.

    offset: its place in the stream, from 0 on; a stream may leave numbers out.
    payload: as ``sample_codec`` writes a sample.
    """

    offset: int
    payload: bytes


class SampleSource(abc.ABC):
    """The samples of one device. One thread calls it; ``close`` may come from another.

    name: of the place that samples come from, for messages.
    skipped: what lies among the samples and is none, by name, and why.
    """

    name = "its stream"
    skipped: Mapping[str, str] = {}

    @abc.abstractmethod
    def require_reached(self) -> None:
        """Raises OSError where the place that samples come from is not there, before ``begin``."""

    @abc.abstractmethod
    def begin(self, offset: int) -> None:
        """Deliver from the sample with this offset on. Called once, before ``read``."""

    def begin_at_end(self) -> None:
        """In place of ``begin``: deliver what arrives from now on, and tell nobody.

        A source that does not know where that is begins at the first sample.
        """
        self.begin(0)

    @abc.abstractmethod
    def read(self, wait_s: float) -> Optional[List[StreamRecord]]:
        """The samples that have arrived since the last call; None where no more will come.

        Waits up to ``wait_s`` seconds for the first. Raises OSError while the source cannot be
        reached: the next call tries again, and goes on behind the last sample that was read.
        """

    @abc.abstractmethod
    def commit(self, offset: int) -> None:
        """Tell the source that a checkpoint contains all samples before this one."""

    @abc.abstractmethod
    def close(self) -> None:
        """End a wait and the connection. Idempotent."""
