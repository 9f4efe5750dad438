"""Many selections, or many errors, in a few figures."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self

from planner.audit.scoring.selections import Selection


class Hits(NamedTuple):
    """How many of how many."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        """Of all."""
        return self.hits / self.of

    def __str__(self) -> str:
        return f"{self.hits} of {self.of}"

    @classmethod
    def among(cls, values: Iterable[bool | None]) -> Self | None:
        """Those that are true of those that are known; None where none is."""
        known = [value for value in values if value is not None]
        return cls(sum(known), len(known)) if known else None


class Summary(NamedTuple):
    """Selections of one kind. worst: the one with the largest regret; fields as in Selection, None where unknown."""

    best: Hits
    best_tied: Hits
    first_two: Hits | None
    first_two_tied: Hits | None
    mean_regret: float
    median_regret: float
    worst: Selection
    mean_tau: float | None


class Spread(NamedTuple):
    """A number of errors, as shares."""

    number: int
    mean_abs: float
    worst_abs: float
    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, errors: Iterable[float | None]) -> Self | None:
        """Of the known ones; None where there are none."""
        known = sorted(error for error in errors if error is not None)
        if not known:
            return None
        sizes = [abs(error) for error in known]
        return cls(len(known), statistics.fmean(sizes), max(sizes), statistics.median(known), known[0], known[-1])


def tally(selections: Sequence[Selection]) -> Summary | None:
    """None of no selection."""
    if not selections:
        return None
    regrets = [each.regret for each in selections]
    taus = [each.tau for each in selections if each.tau is not None]
    return Summary(
        best=Hits(sum(each.hit for each in selections), len(selections)),
        best_tied=Hits(sum(each.hit_tied for each in selections), len(selections)),
        first_two=Hits.among(each.first_two for each in selections),
        first_two_tied=Hits.among(each.first_two_tied for each in selections),
        mean_regret=statistics.fmean(regrets),
        median_regret=statistics.median(regrets),
        worst=max(selections, key=lambda each: each.regret),
        mean_tau=statistics.fmean(taus) if taus else None,
    )


def broken_down(selections: Iterable[Selection], by: Callable[[Selection], str]) -> dict[str, Summary]:
    """A tally of each group, in the order in which the groups first occur."""
    groups: dict[str, list[Selection]] = defaultdict(list)
    for each in selections:
        groups[by(each)].append(each)
    return {name: made for name, group in groups.items() if (made := tally(group)) is not None}
