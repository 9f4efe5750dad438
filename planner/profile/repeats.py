"""Whether what a device took for a model holds at another time, and what counts where it does not. Pure.

Steps in a row tell how much they differ from one another, not that something else ran beside all of them.
"""

from planner.units import seconds
from profilers.records import Repeat, Samples, StepProfile
from profilers.stats import median

#: Two visits whose middle steps differ by more, as a share of the shorter, do not agree.
APART = 0.1


def typical_s(timed: StepProfile | Repeat) -> float:
    """The middle one of a visit's steps, as a device alone makes them, seconds."""
    return median([sum(phases) for phases in zip(timed.gradient_s.values, timed.update_s.values, strict=True)])


def begun(timed: StepProfile) -> StepProfile:
    """A first visit."""
    return timed._replace(visits=(typical_s(timed),))


def unchecked(timed: StepProfile) -> bool:
    """Whether it was visited once only. The paper's protocol has one visit, and older profiles do not tell."""
    return len(timed.visits) == 1 and timed.protocol == "adaptive"


def agree(timed: StepProfile) -> bool:
    """Whether any two of its visits do; one says nothing against itself."""
    if len(timed.visits) < 2:
        return True
    low, high = nearest(timed.visits)
    return high <= low * (1 + APART)


def notes(timed: StepProfile) -> list[str]:
    """What the operator must know of it."""
    if agree(timed):
        return []
    times = ", ".join(map(seconds, timed.visits))
    return [f"a step of {timed.model} took {times} at different times, as if something ran beside it: profile again"]


def nearest(visits: tuple[float, ...]) -> tuple[float, float]:
    """Of several visits the two that differ least, as a share, the shorter one first."""
    ordered = sorted(visits)
    return min(zip(ordered, ordered[1:], strict=False), key=lambda pair: pair[1] / pair[0])


def checked(timed: StepProfile, visit: Repeat) -> StepProfile:
    """After a second visit: with its steps, where both agree."""
    both = timed._replace(visits=(*timed.visits, typical_s(visit)))
    return _pooled(both, visit) if agree(both) else both


def settled(timed: StepProfile, second: Repeat, third: StepProfile) -> StepProfile:
    """After a third visit, a whole one, because two are apart: it counts, with the one that agrees with it."""
    made = third._replace(visits=(*timed.visits, typical_s(third)))
    if not agree(made):
        return made
    return _pooled(made, _visit(timed) if timed.visits[0] in nearest(made.visits) else second)


def _visit(timed: StepProfile) -> Repeat:
    return Repeat(timed.gradient_s, timed.copy_s, timed.update_s, timed.cpu_s_per_step)


def _pooled(timed: StepProfile, visit: Repeat) -> StepProfile:
    """With the steps of another visit, and processor time in proportion to steps."""
    own, more = len(timed.gradient_s.values), len(visit.gradient_s.values)
    return timed._replace(
        gradient_s=_joined(timed.gradient_s, visit.gradient_s),
        copy_s=_joined(timed.copy_s, visit.copy_s),
        update_s=_joined(timed.update_s, visit.update_s),
        cpu_s_per_step=(own * timed.cpu_s_per_step + more * visit.cpu_s_per_step) / (own + more),
    )


def _joined(first: Samples, second: Samples) -> Samples:
    return first._replace(values=first.values + second.values)
