"""What an image is worth: to a strategy, the images that synchronous workers need to a target
over those it needs; to synchronous workers, less the more they are, for each of their steps is
one of a larger batch.

No profile tells that. Races do (benchmarks/worth.py), and it is kept in a small file: that in the
working folder if there is one, else the one that comes with the program.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from planner.json_records import load
from planner.paths import WORTH
from profilers.records import SCHEMA

#: The strategy of a race that is none: the best device by itself.
ALONE = "alone"
SHIPPED = Path(__file__).with_suffix(".json")
#: A critical batch is looked for from a batch over this to this many batches.
WIDEST = 1000.0
REMEDY = "make it again with benchmarks/worth.py, or remove it"


class SampleEfficiency(NamedTuple):
    """One strategy's: the geometric mean over ``pairs`` of runs, in the same place with the same
    seed, and its bounds.

    missed: in how many of them it did not reach the target, which the synchronous workers did.
    """

    strategy: str
    worth: float
    least: float
    most: float
    pairs: int
    missed: int


class Source(NamedTuple):
    """Where worths come from: the accuracy that was the ``target``, how many ``workers`` there
    were in which ``environments``; images: of the training data; date: of the last run,
    YYYY-MM-DD.
    """

    model: str
    data: str
    images: int
    batch: int
    target: float
    environments: tuple[str, ...]
    workers: tuple[int, ...]
    date: str


class SampleEfficiencies(NamedTuple):
    """worth.json. measured: of strategies that always reached the target; missed: the others;
    critical_batch: images, see ``more_images``, None where nobody was seen to need more; no
    source, nothing measured.
    """

    schema: int
    source: Source | None
    measured: tuple[SampleEfficiency, ...]
    missed: tuple[SampleEfficiency, ...]
    critical_batch: float | None = None


NONE = SampleEfficiencies(SCHEMA, None, (), ())


class Reached(NamedTuple):
    """One run of a race: the images until it reached the target, None where it did not get there."""

    environment: str
    seed: int
    strategy: str
    workers: int
    images: float | None


def newest(folder: Path) -> SampleEfficiencies:
    """Those of a folder, or the shipped ones. Raises RecordError where the file does not fit."""
    own = folder / WORTH
    return load(SampleEfficiencies, own if own.exists() else SHIPPED, REMEDY)


def worths(source: Source, runs: Sequence[Reached], equal: Sequence[str]) -> SampleEfficiencies:
    """What is kept of a race."""
    every = measured(runs, equal)
    return SampleEfficiencies(
        SCHEMA,
        source,
        tuple(each for each in every if not each.missed),
        tuple(each for each in every if each.missed),
        critical_batch(runs, equal, source.batch),
    )


def measured(runs: Iterable[Reached], equal: Sequence[str]) -> list[SampleEfficiency]:
    """Worths of all strategies but those that are ``equal`` by definition, and of a device alone.

    In each place and with each seed the measure is the geometric mean of the images that equal
    ones needed. Where none of them reached the target nothing can be said. Bounds and mean are of
    the runs that did; 0 where none did.
    """
    shares: dict[str, list[float | None]] = {}
    for usual, others in _compared(runs, equal):
        for run in others:
            shares.setdefault(run.strategy, []).append(None if run.images is None else usual.images / run.images)
    return [_worth(name, each) for name, each in shares.items() if name != ALONE]


def images_factor(workers: int, batch: int, critical: float | None) -> float:
    """The images that so many synchronous workers need over those that one needs by itself,
    ``batch`` each in a step.

    1 + B / B_crit times as many as with the smallest batch, B being the images of a step
    (McCandlish et al., An Empirical Model of Large-Batch Training, 2018). Where no critical batch
    is known, as many.
    """
    return 1.0 if critical is None else (critical + workers * batch) / (critical + batch)


def critical_batch(runs: Iterable[Reached], equal: Sequence[str], batch: int) -> float | None:
    """B_crit of ``more_images``, by least squares of the logarithms, from equal ones beside a
    device alone.

    None where there are none that both got there, or the device alone needed no less.
    """
    from scipy.optimize import minimize_scalar

    ratios = [
        (usual.workers, math.log(usual.images / run.images))
        for usual, others in _compared(runs, equal)
        for run in others
        if run.strategy == ALONE and run.images is not None
    ]
    if sum(ratio for _, ratio in ratios) <= 0:
        return None

    def error(log_critical: float) -> float:
        wanted = math.exp(log_critical)
        return sum((math.log(images_factor(workers, batch, wanted)) - ratio) ** 2 for workers, ratio in ratios)

    bounds = math.log(batch / WIDEST), math.log(batch * WIDEST)
    return math.exp(minimize_scalar(error, bounds=bounds, method="bounded").x)


class _Usual(NamedTuple):
    """What equal ones needed in one place with one seed, and how many they were."""

    images: float
    workers: int


def _compared(runs: Iterable[Reached], equal: Sequence[str]) -> list[tuple[_Usual, list[Reached]]]:
    """Runs of others, beside the equal ones of the same place and seed."""
    places: dict[tuple[str, int], list[Reached]] = {}
    for run in runs:
        places.setdefault((run.environment, run.seed), []).append(run)
    found = []
    for place in places.values():
        known = [(run.images, run.workers) for run in place if run.strategy in equal and run.images is not None]
        if known:
            usual = _Usual(statistics.geometric_mean(images for images, _ in known), known[0][1])
            found.append((usual, [run for run in place if run.strategy not in equal]))
    return found


def _worth(strategy: str, shares: Sequence[float | None]) -> SampleEfficiency:
    found = [share for share in shares if share is not None] or [0.0]
    mean = statistics.geometric_mean(found) if min(found) else 0.0
    return SampleEfficiency(strategy, mean, min(found), max(found), len(shares), shares.count(None))
