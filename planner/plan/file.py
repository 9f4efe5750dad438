"""A plan (plan.json) is the cluster that was chosen, with its prediction."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from backends.strategies.strategy import Strategy
from backends.training.run_settings import RunSettings
from planner.json_records import load
from planner.predict.run import Prediction, run_time
from planner.provenance import Provenance
from profilers.records.steps import ComputeSettings


class PlannedStream(NamedTuple):
    """The stream of a member's samples as predicted.

    rate: samples a second; samples: of a step.
    free_s: T_i^C if nobody waited for samples; least_s: what it takes at least for the member's own
        samples, or those of another that it waits for.
    waiting_share: of its time, in which it waits for its own samples.
    growth: samples a second by which its buffer grows; buffered: in it at the end.
    buffered_bytes: None where the size of a sample is unknown.
    """

    rate: float
    samples: float
    free_s: float
    least_s: float
    bound_by: str
    waiting_share: float
    growth: float
    buffered: float
    buffered_bytes: float | None


class PlannedWatts(NamedTuple):
    """Watts of a member, None where unknown: idle, at full load, and P_i^C; their source."""

    idle_w: float | None
    busy_w: float | None
    power_w: float | None
    source: Provenance


class PlannedFactors(NamedTuple):
    """Factors of Eq. 2 and 3; those of power are None where watts are unknown."""

    alpha_time: float
    beta_time: float
    alpha_power: float | None
    beta_power: float | None


class PlannedWorker(NamedTuple):
    """A member as predicted.

    steps: its part of the steps.
    cycle_s, build_s: T_i^C, and T_i^B including the initial weights, and what the first step takes
        longer than others.
    evaluation_s: of one sample of the test set; None where unknown.
    computing_s: seconds of a step that it computes, as profiled; None where unknown.
    batch: its part of a global batch; None where all workers have the plan's.
    stream: None where its samples are there from the start.
    compute: how it was profiled.
    """

    name: str
    steps: float
    cycle_s: float
    build_s: float
    cores: float
    watts: PlannedWatts
    factors: PlannedFactors
    framework: str = "torch"
    computing_s: float | None = None
    batch: int | None = None
    evaluation_s: float | None = None
    stream: PlannedStream | None = None
    compute: ComputeSettings = ComputeSettings()


class Plan(NamedTuple):
    """plan.json: the cluster that ``planner train`` runs as it is here, with its prediction.

    fingerprint: of the model or the job that was profiled.
    samples: of a job's training data, where known.
    interval: 95 % bounds of the metric's value; empty once the steps were changed.
    shares: of the workers' time, by what takes it.
    besides_w: watts of the prediction that are no worker's (``--base-watts``, ``--count-idle``).
    energy_uncertainty, time_uncertainty: half of the 95 % interval, as a share; None where no
        spread is known.
    """

    schema: int
    fleet: str
    run: RunSettings
    fingerprint: str
    metric: str
    server: str
    workers: tuple[PlannedWorker, ...]
    prediction: Prediction
    interval: tuple[float, ...]
    network_bytes: float
    shares: dict[str, float]
    besides_w: float = 0.0
    energy_uncertainty: float | None = None
    time_uncertainty: float | None = None
    samples: int | None = None

    def check(self) -> None:
        """Raises ValueError where the parts of the plan do not fit together."""
        if self.run.steps < 1:
            raise ValueError(f"run.steps: expected a whole number from 1 on, found {self.run.steps}")
        if not self.workers:
            raise ValueError("workers: expected at least one, found []")
        twice = next((name for name in self.names if self.names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"workers: {twice!r} is there twice")
        if self.server not in self.names:
            raise ValueError(f"server: expected one of the workers ({', '.join(self.names)}), found {self.server!r}")
        if self.interval and (len(self.interval) != 2 or self.interval[0] > self.interval[1]):
            raise ValueError(f"interval: expected two numbers, the lower one first, found {list(self.interval)}")

    @property
    def framework(self) -> str:
        """The workers', joined by "+"."""
        return "+".join(sorted({worker.framework for worker in self.workers}))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(worker.name for worker in self.workers)

    @property
    def stand_ins(self) -> tuple[str, ...]:
        """The workers that are emulated."""
        return tuple(worker.name for worker in self.workers if worker.watts.source.emulated)

    @property
    def frameworks(self) -> dict[str, str]:
        return {worker.name: worker.framework for worker in self.workers}

    @property
    def computes(self) -> dict[str, ComputeSettings]:
        return {worker.name: worker.compute for worker in self.workers}

    @property
    def batches(self) -> dict[str, int]:
        """Samples of each worker's step."""
        return {worker.name: worker.batch or self.run.batch for worker in self.workers}

    @property
    def run_strategy(self) -> Strategy:
        """The strategy that is carried out: a device alone makes no rounds."""
        return self.run.strategy if len(self.workers) > 1 else self.run.strategy.of_one_member()

    @property
    def has_global_batch(self) -> bool:
        """Whether the workers share a global batch, each with its own part."""
        return any(worker.batch is not None for worker in self.workers)

    def for_steps(self, steps: int) -> "Plan":
        """The same cluster for another number of steps: Eq. 4 again, at the same watts."""
        rates = np.array([[1.0 / worker.cycle_s for worker in self.workers]])
        builds = np.array([worker.build_s for worker in self.workers])
        time_s = float(run_time(steps, rates, builds)[0])
        parts = np.maximum(0.0, time_s - builds) * rates[0]
        return self._replace(
            run=self.run._replace(steps=steps),
            workers=tuple(w._replace(steps=float(n)) for w, n in zip(self.workers, parts, strict=True)),
            prediction=self.prediction._replace(time_s=time_s),
            interval=(),
            network_bytes=self.network_bytes * steps / self.run.steps,
        )


def load_plan(path: Path) -> Plan:
    """Read plan.json. Raises RecordError, with the remedy."""
    return load(Plan, path, remedy="run `planner recommend` first, or add --metric")
