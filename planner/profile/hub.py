"""The links of a fleet are measured with one device, the hub. Pure.

It is the device that is likely to host the server. Links between two others are estimated
(``planner.profile.estimated_links``), and measured where a plan depends on them.
"""

from collections.abc import Collection

from planner.profile.file import Profile
from profilers.stats import mean


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
