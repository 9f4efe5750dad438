"""A fleet's steps and the links of one device, the hub, are measured first, then what a plan needs.

The hub is the device that is likely to host the server. Links between two others are estimated
(``planner.profile.estimated_links``). ``planner.plan.next_measurements`` chooses what is measured
after that. Pure.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from planner.profile.file import Profile
from profilers.stats import mean


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


def hub_of(profile: Profile, names: Collection[str]) -> str | None:
    """That of these devices whose links were measured most, else the fastest; None for none.

    Without steps to compare, the first.
    """
    links = [{link.source, link.target} for link in profile.links]

    def preference(name: str) -> tuple[int, float]:
        measured = sum(name in ends and bool(ends & (set(names) - {name})) for ends in links)
        steps = [mean(step.gradient_s.values) for step in profile.devices[name].steps if step.gradient_s.values]
        return measured, -min(steps, default=float("inf"))

    return max(names, key=preference, default=None)
