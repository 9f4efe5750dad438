"""What an image is worth to a strategy: the images that synchronous workers need to a target, over those it needs.

No profile tells that. Races do (benchmarks/worth.py), and it is kept in a small file: that in the working folder
if there is one, else the one that comes with the program.
"""

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from planner.decode import load
from planner.runs import WORTH
from profilers.records import SCHEMA

SHIPPED = Path(__file__).with_name(WORTH)
REMEDY = "make it again with benchmarks/worth.py, or remove it"


class Worth(NamedTuple):
    """One strategy's: the geometric mean over ``pairs`` of runs, in the same place with the same seed, and its bounds.

    missed: in how many of them it did not reach the target, which the synchronous workers did.
    """

    strategy: str
    worth: float
    least: float
    most: float
    pairs: int
    missed: int


class Source(NamedTuple):
    """Where worths come from: the accuracy that was the ``target``, how many ``workers`` there were in which
    ``environments``; images: of the training data; date: of the last run, YYYY-MM-DD."""

    model: str
    data: str
    images: int
    batch: int
    target: float
    environments: tuple[str, ...]
    workers: tuple[int, ...]
    date: str


class Worths(NamedTuple):
    """worth.json. measured: of strategies that always reached the target; missed: the others; no source, nothing
    measured."""

    schema: int
    source: Source | None
    measured: tuple[Worth, ...]
    missed: tuple[Worth, ...]


NONE = Worths(SCHEMA, None, (), ())


class Reached(NamedTuple):
    """One run of a race: the images until it reached the target, None where it did not get there."""

    environment: str
    seed: int
    strategy: str
    images: float | None


def newest(folder: Path) -> Worths:
    """Those of a folder, or the shipped ones. Raises RecordError where the file does not fit."""
    own = folder / WORTH
    return load(Worths, own if own.exists() else SHIPPED, REMEDY)


def worths(source: Source, found: Iterable[Worth]) -> Worths:
    """What is kept of a race."""
    every = tuple(found)
    return Worths(
        SCHEMA, source, tuple(each for each in every if not each.missed), tuple(each for each in every if each.missed)
    )


def measured(runs: Iterable[Reached], equal: Sequence[str]) -> list[Worth]:
    """Worths of all strategies but those that are ``equal`` by definition.

    In each place and with each seed the measure is the geometric mean of the images that equal ones needed. Where none
    of them reached the target nothing can be said. Bounds and mean are of the runs that did; 0 where none did.
    """
    places: dict[tuple[str, int], dict[str, float | None]] = {}
    for run in runs:
        places.setdefault((run.environment, run.seed), {})[run.strategy] = run.images
    shares: dict[str, list[float | None]] = {}
    for found in places.values():
        known = [images for name, images in found.items() if name in equal and images is not None]
        if known:
            usual = statistics.geometric_mean(known)
            for name, images in found.items():
                shares.setdefault(name, []).append(None if images is None else usual / images)
    return [_worth(name, each) for name, each in shares.items() if name not in equal]


def _worth(strategy: str, shares: Sequence[float | None]) -> Worth:
    found = [share for share in shares if share is not None] or [0.0]
    mean = statistics.geometric_mean(found) if min(found) else 0.0
    return Worth(strategy, mean, min(found), max(found), len(shares), shares.count(None))
