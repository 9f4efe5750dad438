"""Counted steps are those that the host of a run has of each member, again and again."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from backends.protocol.events import Progress


class CountedRate(NamedTuple):
    """Steps/s of a member, and their relative standard error."""

    steps_per_s: float
    error: float


def rate(counts: Sequence[Progress], name: str) -> CountedRate | None:
    """Of a member, between the first and the last count that had grown; None for fewer than two.

    All that a step takes is in it: also what a member waits for its next order, and what passes
    between two steps. A count may have grown at any time since the one before, or a step ago.
    """
    known = [(each.elapsed_s, each.workers[name].steps) for each in counts if name in each.workers]
    grown = [
        (end_s, made, end_s - begin_s) for (begin_s, few), (end_s, made) in itertools.pairwise(known) if made > few
    ]
    if len(grown) < 2:
        return None
    (begin_s, before, _), (end_s, made, _) = grown[0], grown[-1]
    step_s = (end_s - begin_s) / (made - before)
    late_s = math.hypot(*(min(gap_s, step_s) for _, _, gap_s in (grown[0], grown[-1]))) / math.sqrt(12)
    return CountedRate(1 / step_s, late_s / (end_s - begin_s))
