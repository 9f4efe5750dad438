"""A measured audit holds short runs of configurations and the profile that predicts them."""

import math
from typing import NamedTuple

import numpy as np

from backends.strategies.engine import Engine
from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from planner.predict.costs import OWN_ENGINE
from planner.predict.predict import Prediction, run_time
from planner.profile.file import Profile
from planner.provenance import Provenance
from profilers.records.readings import MachineSpeed


class SteadyWorker(NamedTuple):
    """One worker in its steady state.

    build_s: until its model was built, and what its first steps took longer than others.
    watts: None where unknown.
    provenance: source of the watts.
    speed: of its processors meanwhile; None where unknown.
    """

    steps_per_s: float
    build_s: float
    watts: float | None
    provenance: Provenance
    speed: MachineSpeed | None = None

    @property
    def cycle_s(self) -> float:
        """T_i^C, infinite for a worker that made no step."""
        return 1 / self.steps_per_s if self.steps_per_s else math.inf


class MeasuredRun(NamedTuple):
    """One short run of one configuration.

    window_s: measured length of the steady state.
    rate_error: relative standard error of the workers' total steps/s within the run.
    power_error: relative standard error of their total watts within the run.
    disturbance: how much longer a worker's reference loop took in one third of the steady state
        than in another, as a share; 0 where that is unknown.
    """

    model: str
    server: str
    workers: dict[str, SteadyWorker]
    repetition: int
    window_s: float
    rate_error: float
    power_error: float
    disturbance: float = 0.0

    @property
    def steps_per_s(self) -> float:
        """Steps/s of all workers together."""
        return math.fsum(worker.steps_per_s for worker in self.workers.values())

    @property
    def power_w(self) -> float | None:
        """P_j (Eq. 5); None where a member's watts are unknown."""
        known = [worker.watts for worker in self.workers.values() if worker.watts is not None]
        return math.fsum(known) if len(known) == len(self.workers) else None

    @property
    def emulated(self) -> bool:
        return any(worker.provenance.emulated for worker in self.workers.values())

    def time_s(self, steps: int) -> float:
        """T_j of that many steps by Eq. 4, from measured rates and build times."""
        workers = self.workers.values()
        rate = np.array([[worker.steps_per_s for worker in workers]])
        return float(run_time(steps, rate, np.array([worker.build_s for worker in workers]))[0])

    def at(self, steps: int) -> Prediction:
        return Prediction(self.time_s(steps), self.power_w)


class Extrapolation(NamedTuple):
    """Seconds of a long run, as measured and as extrapolated from a short run."""

    model: str
    server: str
    workers: tuple[str, ...]
    predicted_s: float
    measured_s: float

    @property
    def error(self) -> float:
        return self.predicted_s / self.measured_s - 1


class MeasuredAudit(NamedTuple):
    """All runs of one fleet at one set of link rates.

    label: name of the audit in tables.
    steps: number to which runs are extrapolated.
    batch: images of one step of one worker.
    missing: (model, repetition) of every run that was not made yet.
    engine, strategy: of all runs.
    seed: of the settings.
    """

    label: str
    profile: Profile
    framework: str | None
    steps: int
    batch: int
    measured: tuple[MeasuredRun, ...]
    extrapolations: tuple[Extrapolation, ...]
    missing: tuple[tuple[str, int], ...] = ()
    engine: Engine = OWN_ENGINE
    strategy: Strategy = PARAMETER_SERVER
    seed: int = 0
