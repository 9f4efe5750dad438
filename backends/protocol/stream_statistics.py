"""A member tells of its stream of samples, and of those that it gives to others."""

from typing import Dict, NamedTuple, Optional


class StreamPosition(NamedTuple):
    """How far a member has read its stream of samples."""

    offset: int  # of the first sample that no step has used
    rate: Optional[float]  # samples that arrive in a second; None before it was measured


class StreamEnd(NamedTuple):
    """Why no more samples arrive at a member. fault: its source failed, and did not end."""

    reason: str
    fault: bool = False


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
    skipped: int = 0  # entries of a directory that are no files of samples
    skipped_first: str = ""  # the first of them, and what it is


class InjectionStatistics(NamedTuple):
    """What a member has given to others, and received, by data injection; in samples.

    Bytes are those of the samples. What goes through a server is sent once, for all receivers.
    """

    shared: int  # own ones, each counted once
    sent_bytes: int
    received: int  # without malformed ones
    received_bytes: int
    used: int  # received ones that were in batches
    waiting: int  # received ones that wait for a batch now
    dropped: int  # received ones for which no batch had room
    malformed: int  # received ones that were set aside
    shared_with: Dict[str, int]  # by receiver, those that were sent to it
    set_aside: str = ""  # the file with malformed ones on the device; empty where there are none
