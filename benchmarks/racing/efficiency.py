"""Sample efficiencies and the critical batch follow from the runs of a race to a target."""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from planner.predict.sample_efficiency import SampleEfficiencies, SampleEfficiency, Source, images_factor
from profilers.records.json_values import SCHEMA

#: The name in a race of the best device by itself, which follows no strategy.
ALONE = "alone"
#: The critical batch is searched from a batch over this to this many batches.
SEARCH_RANGE = 1000.0


class Reached(NamedTuple):
    """One run of a race; images: until it reached the target, None where it did not."""

    environment: str
    seed: int
    strategy: str
    workers: int
    images: float | None


def of_race(source: Source, runs: Sequence[Reached], equal: Sequence[str]) -> SampleEfficiencies:
    """The sample efficiencies that the runs of a race tell."""
    every = measured(runs, equal)
    return SampleEfficiencies(
        SCHEMA,
        source,
        tuple(each for each in every if not each.missed),
        tuple(each for each in every if each.missed),
        critical_batch(runs, equal, source.batch),
    )


def measured(runs: Iterable[Reached], equal: Sequence[str]) -> list[SampleEfficiency]:
    """Sample efficiencies of all strategies but ``equal`` ones and a device alone.

    The reference is the geometric mean of the images that the equal strategies needed, in the same
    place with the same seed; there is none where none of them reached the target.
    Mean and bounds are of runs that reached it; 0 where none did.
    """
    shares: dict[str, list[float | None]] = {}
    for reference, others in _compared(runs, equal):
        for run in others:
            shares.setdefault(run.strategy, []).append(None if run.images is None else reference.images / run.images)
    return [_efficiency(name, each) for name, each in shares.items() if name != ALONE]


def critical_batch(runs: Iterable[Reached], equal: Sequence[str], batch: int) -> float | None:
    """The critical batch of ``images_factor``, by least squares of logarithms.

    It is fitted to equal strategies beside a device alone, in the same place with the same seed.
    None where no such pair reached the target, or the device alone needed no fewer images.
    """
    from scipy.optimize import minimize_scalar

    ratios = [
        (reference.workers, math.log(reference.images / run.images))
        for reference, others in _compared(runs, equal)
        for run in others
        if run.strategy == ALONE and run.images is not None
    ]
    if sum(ratio for _, ratio in ratios) <= 0:
        return None

    def error(log_critical: float) -> float:
        critical = math.exp(log_critical)
        return sum((math.log(images_factor(workers, batch, critical)) - ratio) ** 2 for workers, ratio in ratios)

    bounds = math.log(batch / SEARCH_RANGE), math.log(batch * SEARCH_RANGE)
    return math.exp(minimize_scalar(error, bounds=bounds, method="bounded").x)


class _Reference(NamedTuple):
    """Images that equal strategies needed in one place with one seed, and their workers."""

    images: float
    workers: int


def _compared(runs: Iterable[Reached], equal: Sequence[str]) -> list[tuple[_Reference, list[Reached]]]:
    """Runs of other strategies, beside the equal ones of the same place and seed."""
    places: dict[tuple[str, int], list[Reached]] = {}
    for run in runs:
        places.setdefault((run.environment, run.seed), []).append(run)
    found = []
    for place in places.values():
        known = [(run.images, run.workers) for run in place if run.strategy in equal and run.images is not None]
        if known:
            reference = _Reference(statistics.geometric_mean(images for images, _ in known), known[0][1])
            found.append((reference, [run for run in place if run.strategy not in equal]))
    return found


def _efficiency(strategy: str, shares: Sequence[float | None]) -> SampleEfficiency:
    found = [share for share in shares if share is not None] or [0.0]
    mean = statistics.geometric_mean(found) if min(found) else 0.0
    return SampleEfficiency(strategy, mean, min(found), max(found), len(shares), shares.count(None))
