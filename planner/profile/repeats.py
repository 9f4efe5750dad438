"""A model's timing is repeated minutes later, and repeats that agree are pooled. Pure.

Steps in a row show how much they differ, not that something else ran beside all of them.
"""

import functools
import itertools
from collections.abc import Collection, Sequence
from typing import TypeVar

from planner.profile.machine_speed import joined_speed
from planner.units import seconds
from profilers.records.readings import Samples
from profilers.records.steps import Crowded, Repeat, StepProfile
from profilers.stats import mean

#: Two repeats agree if their mean steps differ by no more, as a share of the shorter.
TOLERANCE = 0.1

Timing = TypeVar("Timing", StepProfile, Repeat)


def step_s(timed: StepProfile | Repeat) -> float:
    """Mean seconds of a step of a repeat, of a device that trains alone.

    A quota holds up some short steps and no others, so that their median says little.
    """
    return mean(timed.gradient_s.values) + mean(timed.update_s.values)


def begun(timed: StepProfile) -> StepProfile:
    """A timing that counts as the first repeat."""
    return timed._replace(repeats=(step_s(timed),))


def unchecked(timed: StepProfile) -> bool:
    """Whether the timing should be repeated: the paper's protocol and older profiles have none."""
    return len(timed.repeats) == 1 and timed.protocol == "adaptive"


def agree(timed: StepProfile) -> bool:
    """Whether any two of its repeats agree; a single one always does."""
    return len(timed.repeats) < 2 or _alike(*nearest(timed.repeats))


def _alike(shorter_s: float, longer_s: float) -> bool:
    return longer_s <= shorter_s * (1 + TOLERANCE)


def notes(timed: StepProfile) -> list[str]:
    """A warning for the operator where no two repeats agree."""
    if agree(timed):
        return []
    times = ", ".join(map(seconds, timed.repeats))
    return [f"a step of {timed.model} took {times} at different times, as if something ran beside it: profile again"]


def nearest(repeats_s: tuple[float, ...]) -> tuple[float, float]:
    """The two repeats that differ least, as a share, the shorter one first."""
    return min(itertools.pairwise(sorted(repeats_s)), key=lambda pair: pair[1] / pair[0])


def checked(timed: StepProfile, second: Repeat) -> StepProfile:
    """The timing after a second repeat, whose steps join where both agree."""
    both = timed._replace(repeats=(*timed.repeats, step_s(second)))
    return _pooled(both, second) if agree(both) else both


def settled(timed: StepProfile, second: Repeat, third: StepProfile) -> StepProfile:
    """The timing after a third, whole repeat; its steps count, with those of one that agrees.

    Steps beside others count as before.
    """
    made = third._replace(repeats=(*timed.repeats, step_s(third)), crowded=timed.crowded)
    if not agree(made):
        return made
    return _pooled(made, timed if timed.repeats[0] in nearest(made.repeats) else second)


def crowd_agrees(timed: StepProfile, names: Collection[str], found: Repeat) -> bool:
    """Whether steps beside these devices take as long as those made beside them before, if any."""
    before = _beside(timed, names)
    return before is None or _alike(*sorted((step_s(before.steps), step_s(found))))


def crowded(timed: StepProfile, names: Collection[str], found: Sequence[Repeat]) -> StepProfile:
    """The timing after steps were made beside these devices, once or twice.

    They join those made beside the same ones before; of three repeats the two that differ least.
    """
    before = _beside(timed, names)
    repeats = [] if before is None else [before.steps]
    repeats += found
    if len(repeats) > 2:
        low_s, high_s = nearest(tuple(map(step_s, repeats)))
        counted = [each for each in repeats if low_s <= step_s(each) <= high_s]
    else:
        counted = repeats
    steps = functools.reduce(_pooled, counted)
    return timed._replace(crowded=Crowded(tuple(names), steps, len(repeats)))


def _beside(timed: StepProfile, names: Collection[str]) -> Crowded | None:
    """Steps that were made beside these devices and no others."""
    return timed.crowded if timed.crowded is not None and set(timed.crowded.names) == set(names) else None


def lacks_crowd(timed: StepProfile, names: frozenset[str], times: int) -> bool:
    """Whether a device was timed less often than ``times`` beside all of these."""
    known = timed.crowded
    return known is None or not names <= set(known.names) or known.repeats < times


def _pooled(timed: Timing, other: StepProfile | Repeat) -> Timing:
    """Append the steps of another repeat; processor time and speed are means over all steps."""
    own, more = len(timed.gradient_s.values), len(other.gradient_s.values)
    return timed._replace(
        gradient_s=_joined(timed.gradient_s, other.gradient_s),
        copy_s=_joined(timed.copy_s, other.copy_s),
        update_s=_joined(timed.update_s, other.update_s),
        cpu_s_per_step=(own * timed.cpu_s_per_step + more * other.cpu_s_per_step) / (own + more),
        speed=joined_speed([timed.speed, other.speed]),
    )


def _joined(first: Samples, second: Samples) -> Samples:
    return first._replace(values=first.values + second.values)
