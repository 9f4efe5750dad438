"""The samples that arrive at a device are counted for a while.

None of them is used, and nothing is committed: a run begins where it would have begun.
"""

import math
import time
from typing import Any, Callable, List, Tuple

from backends.protocol.orders import WatchStream
from backends.streams.source import SampleSource
from backends.streams.spec import StreamSpec
from backends.streams.stream_batches import source_from_elsewhere
from profilers.records.readings import StreamRate
from profilers.stats import mean, stdev

#: Longest wait in a source.
TICK_S = 0.1
#: Seconds between attempts to reach a source.
RETRY_S = 1.0
#: Seconds in which all that was there before is passed over.
BACKLOG_S = 5.0
#: Equal parts of the time, by whose counts the error of the rate is told.
PARTS = 10


def watch_stream(task: Any, order: WatchStream) -> StreamRate:
    """How many samples arrive here in a second.

    Raises ValueError for a stream of which too little arrives, OSError where it is not reached.
    """
    spec = StreamSpec.from_text(order.text)
    source = source_from_elsewhere(spec, order.device)
    try:
        source.require_reached()
        return count(source, order.seconds, spec.patience_s, pause=task.stopping.wait)
    finally:
        source.close()


def count(
    source: SampleSource,
    seconds: float,
    patience_s: float,
    pause: Callable[[float], object],
    clock: Callable[[], float] = time.monotonic,
) -> StreamRate:
    """The rate of what arrives within so many seconds after the first sample.

    What was there before does not arrive: it is passed over, until the source has nothing more.
    patience_s: within which the first must arrive. pause: waits; True ends all.
    """
    source.begin_at_end()
    first_s = _first_arrival(source, patience_s, pause, clock)
    arrived: List[Tuple[float, int]] = []
    payload_bytes, lasted_s = 0, seconds
    while clock() - first_s < seconds:
        try:
            records = source.read(min(TICK_S, max(0.0, first_s + seconds - clock())))
        except OSError:
            records = []  # in a run, too, nothing arrives then
            if pause(RETRY_S):
                raise
        now_s = clock() - first_s
        if records is None:
            lasted_s = now_s
            break
        if records and now_s <= seconds:
            arrived.append((now_s, len(records)))
            payload_bytes += sum(len(record.payload) for record in records)
    return _rate(arrived, payload_bytes, lasted_s)


def _first_arrival(
    source: SampleSource, patience_s: float, pause: Callable[[float], object], clock: Callable[[], float]
) -> float:
    """When the first sample has arrived that was not there before."""
    began_s, trouble, is_new = clock(), "", False
    while clock() - began_s <= patience_s:
        try:
            records = source.read(TICK_S if is_new else 0.0)
        except OSError as error:
            trouble = ": %s" % error
            if pause(RETRY_S):
                break
            continue
        trouble = ""
        if records is None:
            raise ValueError("its stream has ended: no more samples arrive")
        if records and is_new:
            return clock()
        is_new = is_new or not records or clock() - began_s >= BACKLOG_S
    raise OSError("no sample has arrived for %.0f s%s" % (clock() - began_s, trouble))


def _rate(arrived: List[Tuple[float, int]], payload_bytes: int, lasted_s: float) -> StreamRate:
    """arrived: seconds since the first sample and the number of samples, of each read."""
    total = sum(number for _, number in arrived)
    if not total:
        raise ValueError("after the first sample, none arrived for %.0f s: too few to tell a rate" % lasted_s)
    parts = [0.0] * PARTS
    for at_s, number in arrived:
        parts[min(PARTS - 1, int(at_s / lasted_s * PARTS))] += number
    error = stdev(parts) / mean(parts) / math.sqrt(PARTS)
    return StreamRate(total / lasted_s, error, lasted_s, payload_bytes / float(total))
