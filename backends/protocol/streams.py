"""A member tells the host and the operator how far its stream of samples has come."""

from typing import NamedTuple, Optional


class StreamPosition(NamedTuple):
    """How far a member has read its stream of samples."""

    offset: int  # of the first sample that no step has used
    rate: Optional[float]  # samples that arrive in a second; None before it was measured


class StreamStatistics(NamedTuple):
    """A member's stream of samples so far; in samples, where nothing else is said."""

    rate: Optional[float]  # that arrive in a second; None before it was measured
    batch: int  # of the newest step
    offset: int  # of the first that no step has used
    waited_s: float  # seconds for which the member waited for batches to arrive
    arrived: int  # all but those that are malformed
    used: int  # in steps
    buffered: int  # that wait for a step now
    peak_buffered: int  # most that did
    dropped: int  # by truncation
    stored: int  # that were written to disk, for memory was full
    malformed: int  # that were set aside
    set_aside: str = ""  # the file with them on the device; empty where there are none
