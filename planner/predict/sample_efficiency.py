"""The sample efficiency of a strategy tells how many images it needs to a target accuracy.

It is the images that synchronous workers needed over those that the strategy needed. Synchronous
workers themselves need the more images the more they are, for their steps have larger batches.
A race measures it (benchmarks/sample_efficiency.py). The file with the figures is the one in the
working folder, else the one that comes with the program.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats
from planner.json_records import load
from planner.paths import SAMPLE_EFFICIENCY
from profilers.records.json_values import SCHEMA

SHIPPED = Path(__file__).with_suffix(".json")
#: By which images grow at the least with workers, so that a critical batch is finite.
_LEAST = 1e-6
REMEDY = "make it again with benchmarks/sample_efficiency.py, or remove it"


class Learning(NamedTuple):
    """What decides how many steps of a cluster teach as much as those that were asked for.

    training_samples: those of the data set; 0 for the job's own, or the usual number.
    sample_efficiency: if given, the steps are those of one device alone, and the run makes more: it
        takes 1 / sample_efficiency times the images of synchronous workers with fixed batches.
    critical_batch: images, by which ``images_factor`` tells theirs; None where it is unknown.
    rounds: of rounds of local steps, in place of both; None to count all steps alike.
    """

    training_samples: int = 0
    sample_efficiency: float | None = None
    critical_batch: float | None = None
    rounds: "RoundsEfficiency | None" = None


class SampleEfficiency(NamedTuple):
    """Geometric mean and bounds of a strategy, over ``pairs`` of runs in one place with one seed.

    missed: in how many pairs it did not reach the target, which the synchronous workers reached.
    """

    strategy: str
    mean: float
    least: float
    most: float
    pairs: int
    missed: int


class Source(NamedTuple):
    """Where sample efficiencies were measured, to which accuracy, of how many workers.

    images: of the training data; date: of the last run, YYYY-MM-DD.
    """

    model: str
    data: str
    images: int
    batch: int
    target: float
    environments: tuple[str, ...]
    workers: tuple[int, ...]
    date: str


class RoundsEfficiency(NamedTuple):
    """How much sooner n workers get to a target by rounds of h local steps than one of them alone.

    n equal workers make 1 / s(n, h) of its steps each, s = n^(power - decline h): fitted to
    ``pairs`` of runs with the workers and the steps that are named. Of unequal ones that make h_i
    steps, n is (sum h)^2 / sum h^2 and h is sum h^2 / sum h: so many equal ones reduce the noise of
    a mean weighed by steps as much, and move as far.
    For another batch size, the images that were fitted give a critical batch at the source's batch
    size, which ``images_factor`` uses. More workers than were measured have the critical batch of
    the most that were.

    strategy: without its rounds. error: standard deviation of the logarithm of s around the fit.
    missed: runs that did not reach the target, which are in no pair.
    """

    strategy: str
    power: float
    decline: float
    error: float
    workers: tuple[int, ...]
    steps: tuple[int, ...]
    pairs: int
    missed: int
    source: Source

    def images_factor(self, steps: Floats, members: Bools, batch: Floats, usual: float) -> Floats:
        """(C,) images of all workers over those of one alone with the usual batch.

        steps, members: (C, N); batch: (C,) images of a local step.
        """
        total = np.where(members, steps, 0.0).sum(axis=1)
        squares = np.where(members, steps**2, 0.0).sum(axis=1)
        n, h = total**2 / squares, squares / total
        critical = self.critical_batch(n, h)
        return np.asarray((critical + n * batch) / (critical + usual))

    def critical_batch(self, n: Floats, h: Floats) -> Floats:
        """The critical batch of n equal workers with rounds of h steps, of one shape."""
        n = np.clip(n, min(self.workers), max(self.workers))
        factor = np.clip(n ** (1 - self.power + self.decline * h), 1 + _LEAST, n - _LEAST)
        return np.asarray(self.source.batch * (n - factor) / (factor - 1))


class CriticalBatch(NamedTuple):
    """Images, None where larger batches need no more or nothing is known; and where measured."""

    images: float | None
    source: Source | None


class SampleEfficiencies(NamedTuple):
    """Those of strategies that always reached the target, and of others; source: None without any.

    critical_batch: images, see ``images_factor``; None where larger batches needed no more.
    rounds: those of local steps.
    """

    schema: int
    source: Source | None
    measured: tuple[SampleEfficiency, ...]
    missed: tuple[SampleEfficiency, ...]
    critical_batch: float | None = None
    rounds: tuple[RoundsEfficiency, ...] = ()

    @property
    def synchronous(self) -> CriticalBatch:
        """The critical batch of synchronous steps, on one scale with rounds.

        Rounds are synchronous steps that exchange less often. Steps that exchange every time need
        no more images, so the critical batch is at least that of rounds of one step.
        """
        found = CriticalBatch(self.critical_batch, self.source)
        if self.critical_batch is None and self.source is not None:  # larger batches needed no more
            return found
        one = np.ones(1)
        for each in self.rounds:
            of_rounds = float(each.critical_batch(max(each.workers) * one, one)[0])
            if found.images is None or of_rounds > found.images:
                found = CriticalBatch(of_rounds, each.source)
        return found


NONE = SampleEfficiencies(SCHEMA, None, (), ())


def newest(folder: Path) -> SampleEfficiencies:
    """Those of a folder, or the shipped ones. Raises RecordError where the file does not fit."""
    own = folder / SAMPLE_EFFICIENCY
    return load(SampleEfficiencies, own if own.exists() else SHIPPED, REMEDY)


def images_factor(workers: float, batch: int, critical: float | None) -> float:
    """Images that synchronous workers need over those that one alone needs; 1 where unknown.

    critical: the critical batch B; a step of b images needs 1 + b / B times the images of small
        steps (McCandlish et al., An Empirical Model of Large-Batch Training, 2018).
    """
    return 1.0 if critical is None else (critical + workers * batch) / (critical + batch)
