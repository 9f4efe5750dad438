"""What an audit measured: short runs of configurations, beside the profile from which they were predicted."""

import math
from typing import NamedTuple

import numpy as np

from planner.predict.predict import Prediction, run_time
from planner.profile.file import Profile
from planner.provenance import Provenance


class Steady(NamedTuple):
    """One worker in its steady state.

    watts: None where unknown; provenance: where they come from; drift: processor seconds of a gradient in this run over
    those when it was profiled, 1.0 where unknown.
    """

    steps_per_s: float
    build_s: float
    watts: float | None
    provenance: Provenance
    drift: float = 1.0

    @property
    def cycle_s(self) -> float:
        """T_i^C, infinite for a worker that made no step."""
        return 1 / self.steps_per_s if self.steps_per_s else math.inf


class MeasuredRun(NamedTuple):
    """One short run of one configuration.

    window_s: length of the steady state that was measured; rate_error, power_error: relative standard errors of the
    workers' total steps/s and watts within the run.
    """

    model: str
    server: str
    workers: dict[str, Steady]
    repetition: int
    window_s: float
    rate_error: float
    power_error: float

    @property
    def steps_per_s(self) -> float:
        """Of all workers together."""
        return math.fsum(worker.steps_per_s for worker in self.workers.values())

    @property
    def power_w(self) -> float | None:
        """P_j (Eq. 5); None where a member's watts are unknown."""
        known = [worker.watts for worker in self.workers.values() if worker.watts is not None]
        return math.fsum(known) if len(known) == len(self.workers) else None

    @property
    def emulated(self) -> bool:
        """Whether a member's watts are an emulated device's."""
        return any(worker.provenance.emulated for worker in self.workers.values())

    def time_s(self, steps: int) -> float:
        """T_j of that many steps by Eq. 4, from measured rates and build times."""
        workers = self.workers.values()
        rate = np.array([[worker.steps_per_s for worker in workers]])
        return float(run_time(steps, rate, np.array([worker.build_s for worker in workers]))[0])

    def at(self, steps: int) -> Prediction:
        """Time, power, energy and EDP of that many steps."""
        return Prediction(self.time_s(steps), self.power_w)


class Extrapolation(NamedTuple):
    """Seconds of a long run: as a short run of its configuration foretold, and as it took."""

    model: str
    server: str
    workers: tuple[str, ...]
    predicted_s: float
    measured_s: float

    @property
    def error(self) -> float:
        """Relative to what it took."""
        return self.predicted_s / self.measured_s - 1


class MeasuredAudit(NamedTuple):
    """One fleet at its link rates. label: its name in tables; steps: S; batch: images a worker takes a step.

    missing: (model, repetition) of every run that was not made yet.
    """

    label: str
    profile: Profile
    framework: str | None
    steps: int
    batch: int
    measured: tuple[MeasuredRun, ...]
    extrapolations: tuple[Extrapolation, ...]
    missing: tuple[tuple[str, int], ...] = ()
