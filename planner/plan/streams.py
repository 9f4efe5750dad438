"""Planned streams tell of each member of a cluster its waits for samples and its buffer."""

import math

import numpy as np

from planner.arrays import Floats
from planner.plan.file import PlannedStream
from planner.predict.clusters import Candidates
from planner.predict.cycle import batches, least_cycles_s, waiting_shares
from planner.predict.inputs import Inputs
from planner.predict.streams import slowest_streams

#: What makes a member's cycle as long as it is; ``OF_OTHER`` is followed by names.
OWN_STREAM, OF_OTHER, STEPS = "its stream", "the stream of", "its steps"


def planned_streams(
    inputs: Inputs, candidate: Candidates, free_s: Floats, cycle_s: Floats, lasts_s: Floats
) -> dict[str, PlannedStream]:
    """By name, of the members of one candidate.

    free_s: (1, N) cycles if nobody waited for samples; cycle_s: (1, N); lasts_s: (1, N) seconds for
    which each makes steps.
    """
    streams = inputs.streams
    assert streams is not None, "the caller asked"
    samples, least_s = batches(inputs, candidate), least_cycles_s(inputs, candidate)
    waiting, surplus = waiting_shares(inputs, candidate, free_s), streams.surplus(samples, cycle_s)
    buffered = streams.buffered(samples, surplus, lasts_s)[0]
    held = least_s[0] > free_s[0]
    slowest = slowest_streams(free_s, least_s, samples / streams.rate)[0]
    of_other = f"{OF_OTHER} {', '.join(inputs.names[i] for i in np.flatnonzero(slowest))}"
    growth = np.zeros_like(surplus) if streams.truncates else surplus
    found = {}
    for i in np.flatnonzero(candidate.members(len(inputs.names))[0]):
        held_bytes = float(buffered[i] * streams.sample_bytes[i])
        found[inputs.names[i]] = PlannedStream(
            rate=float(streams.rate[i]),
            samples=float(samples[0, i]),
            free_s=float(free_s[0, i]),
            least_s=float(least_s[0, i]),
            bound_by=OWN_STREAM if slowest[i] else of_other if held[i] else STEPS,
            waiting_share=float(waiting[0, i]),
            growth=float(growth[0, i]),
            buffered=float(buffered[i]),
            buffered_bytes=None if math.isnan(held_bytes) else held_bytes,
        )
    return found
