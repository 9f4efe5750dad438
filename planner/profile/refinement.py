"""What a plan depends on is measured more precisely, one thing after the other."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from planner.profile.file import Profile
from profilers.records.readings import Samples
from profilers.records.steps import Repeat, StepProfile


class LinkWanted(NamedTuple):
    """The link between two devices, both ways, which was estimated so far."""

    one: str
    other: str


class StepsWanted(NamedTuple):
    """More steps of a device, of the model that is planned."""

    device: str
    model: str


Wanted = LinkWanted | StepsWanted
#: What to measure next, by the profile so far, what was asked for already, and the seconds that
#: profiling has taken; None for nothing more.
NextWanted = Callable[[Profile, Sequence[Wanted], float], Wanted | None]


def with_more_steps(timed: StepProfile, more: Repeat) -> StepProfile:
    """The timing with further steps; processor time is the mean over all."""
    own, others = len(timed.gradient_s.values), len(more.gradient_s.values)
    return timed._replace(
        gradient_s=_joined(timed.gradient_s, more.gradient_s),
        copy_s=_joined(timed.copy_s, more.copy_s),
        update_s=_joined(timed.update_s, more.update_s),
        cpu_s_per_step=(own * timed.cpu_s_per_step + others * more.cpu_s_per_step) / (own + others),
    )


def _joined(first: Samples, second: Samples) -> Samples:
    return first._replace(values=first.values + second.values)
