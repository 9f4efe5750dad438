"""Summaries reduce many selections or errors to a few figures."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self

from planner.audit.scoring.selections import Selection


class Hits(NamedTuple):
    """The number of selections that hit, and the number of all."""

    hits: int
    of: int

    @property
    def share(self) -> float:
        return self.hits / self.of

    def __str__(self) -> str:
        return f"{self.hits} of {self.of}"

    @classmethod
    def among(cls, values: Iterable[bool | None]) -> Self | None:
        """The true values among the known ones; None where none is known."""
        known = [value for value in values if value is not None]
        return cls(sum(known), len(known)) if known else None


class Summary(NamedTuple):
    """Selections of one kind; fields as in Selection, None where unknown.

    worst: the selection with the largest regret
    """

    best: Hits
    best_tied: Hits
    first_two: Hits | None
    first_two_tied: Hits | None
    mean_regret: float
    median_regret: float
    worst: Selection
    mean_tau: float | None


class Spread(NamedTuple):
    """Distribution of errors, as shares."""

    number: int
    mean_abs: float
    worst_abs: float
    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, errors: Iterable[float | None]) -> Self | None:
        """The distribution of the known errors; None where there are none."""
        known = sorted(error for error in errors if error is not None)
        if not known:
            return None
        sizes = [abs(error) for error in known]
        return cls(len(known), statistics.fmean(sizes), max(sizes), statistics.median(known), known[0], known[-1])


def summarise(selections: Sequence[Selection]) -> Summary | None:
    """The figures of all selections; None where there are none."""
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


def summarise_by(selections: Iterable[Selection], by: Callable[[Selection], str]) -> dict[str, Summary]:
    """A summary of each group, in the order in which the groups first occur."""
    groups: dict[str, list[Selection]] = defaultdict(list)
    for each in selections:
        groups[by(each)].append(each)
    return {name: made for name, group in groups.items() if (made := summarise(group)) is not None}
