"""The samples of a batch may have to arrive first; a training loop waits for them here."""

from typing import Callable, Optional

from backends.protocol.stream_statistics import StreamEnd, StreamPosition, StreamStatistics


class SamplesMissing(Exception):
    """A wait for samples ends without them."""


class WaitInterrupted(SamplesMissing):
    """The run is over, or the member is to stop."""


class StreamEnded(SamplesMissing):
    """No more samples will arrive; ``end`` says why."""

    def __init__(self, end: StreamEnd) -> None:
        super().__init__(end.reason)
        self.end = end


def never() -> bool:
    return False


class Arrivals:
    """Samples that are there from the start, for which nobody waits; others extend it.

    waited_s: seconds of all waits.
    """

    waited_s = 0.0

    def begin(self, offset: int = 0) -> None:
        """Let samples arrive, from this offset of the stream on."""

    def wait(self, count: int, over: Callable[[], bool] = never) -> None:
        """Return when so many samples are there.

        over: whether they are no longer wanted.
        Raises WaitInterrupted then, and StreamEnded where they will never be there.
        """

    def position(self) -> Optional[StreamPosition]:
        """How far the stream has been read by the batches so far, which count as used from now on.

        None where there is no stream.
        """
        return None

    def commit(self, offset: int) -> None:
        """A checkpoint contains all samples before this offset."""

    def put_back(self) -> None:
        """Give the samples again that were read since ``position``: their step was not made."""

    def statistics(self) -> Optional[StreamStatistics]:
        """Figures of the stream up to now; None where there is none."""
        return None

    def stop(self) -> None:
        """Let no more samples arrive, and end all waits. Idempotent."""

    def close(self) -> None:
        """Stop, and remove what was stored. Idempotent."""


#: Of all batches whose samples are on the device.
ALL_THERE = Arrivals()
