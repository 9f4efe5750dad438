"""Batches may take in samples of other devices and give some of their own; most do neither."""

from typing import NamedTuple, Optional, Sequence, Tuple

from backends.protocol.frames import Share
from backends.protocol.stream_statistics import InjectionStatistics


class GivenSamples(NamedTuple):
    """The bytes of each sample that is given to others, and the names of those."""

    receivers: Tuple[str, ...] = ()
    payloads: Tuple[bytes, ...] = ()


class Injection:
    """Of batches that neither take in samples nor give any; others extend it. Thread-safe."""

    def begin_step(self, share: Optional[Share]) -> None:
        """A step, or a round of local steps, begins; of its first batch so much is to be given."""

    def ready(self, batch: int) -> int:
        """Samples of others that the next batch of this size takes in at the least."""
        return 0

    def take_given(self, through_server: bool) -> GivenSamples:
        """What the step gives, once; it counts as given from now on.

        through_server: whether it leaves the device once, and not once for every receiver.
        """
        return GivenSamples()

    def receive(self, payloads: Sequence[bytes]) -> None:
        """Samples of another device have arrived. Raises ValueError where nobody wants any."""
        raise ValueError("samples of another device arrived, but no data injection was asked for")

    def statistics(self) -> Optional[InjectionStatistics]:
        """Figures up to now; None where there is no injection."""
        return None


#: Of all batches that consist of a device's own samples.
NO_INJECTION = Injection()
