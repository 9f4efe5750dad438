"""A case holds the measured configurations of one model in one repetition."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats
from planner.audit.scoring.measured import MeasuredAudit, MeasuredRun
from planner.errors import AuditError
from planner.plan.rank import METRICS
from planner.plan.request import RecommendRequest
from planner.predict.batch_size import RunLength
from planner.predict.calibration import exchange_kind
from planner.predict.clusters import Candidates, ClusterConfig
from planner.predict.costs import Costs, costs_of
from planner.profile.file import Profile

#: Key of one configuration of one model in one audit, for all repetitions.
Key = tuple[str, str, ClusterConfig]


class Estimates(NamedTuple):
    """Time and power of C configurations, predicted or measured, (C,); NaN where unknown."""

    time_s: Floats
    power_w: Floats

    def log(self, metric: str) -> Floats:
        """(C,) logarithm of a metric T^a P^b, NaN where it needs watts that are unknown."""
        time, power = METRICS[metric]
        return time * np.log(self.time_s) + (power * np.log(self.power_w) if power else 0.0)


class Case(NamedTuple):
    """The configurations from which a rule chooses one, in a fixed order.

    Smaller clusters come first; within a size, those with the faster server.
    steps: number to which runs are extrapolated.
    candidates, runs, measured: (C,), of the same configurations.
    """

    audit: str
    model: str
    repetition: int
    steps: int
    profile: Profile
    costs: Costs
    candidates: Candidates
    runs: tuple[MeasuredRun, ...]
    measured: Estimates

    @property
    def configs(self) -> tuple[ClusterConfig, ...]:
        return tuple(
            ClusterConfig(run.server, tuple(n for n in self.costs.names if n in run.workers), self.costs.batch)
            for run in self.runs
        )

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple((self.audit, self.model, config) for config in self.configs)

    @property
    def exchange(self) -> str:
        """The kind of exchange between members."""
        return exchange_kind(self.costs.strategy, self.costs.engine)

    @property
    def members(self) -> Bools:
        """(C, N), whether each device is a member."""
        return self.candidates.members(len(self.costs.names))


def cases_of(audit: MeasuredAudit) -> tuple[Case, ...]:
    """One case for each model and repetition.

    Raises AuditError or PlanError where a run has no counterpart in the profile.
    """
    return tuple(each for model in sorted({run.model for run in audit.measured}) for each in _of_model(audit, model))


def step_alone_s(of: Costs) -> Floats:
    """T_i, (N,) seconds of a step of each device alone."""
    return of.devices.alone_s


def _of_model(audit: MeasuredAudit, model: str) -> Iterable[Case]:
    asked = RecommendRequest(allow_plaintext=True, strategy=audit.strategy).by(audit.engine)
    of_model = costs_of(
        audit.profile, model, audit.framework, audit.batch,
        strategy=asked.strategy, engine=asked.engine, allow_plaintext=asked.allow_plaintext,
        run=RunLength(rates_seed=audit.seed),
    )  # fmt: skip
    runs = [run for run in audit.measured if run.model == model]
    for run in runs:
        _check(audit.label, of_model, run)
    for repetition in sorted({run.repetition for run in runs}):
        yield _case(audit, of_model, [run for run in runs if run.repetition == repetition])


def _case(audit: MeasuredAudit, of_model: Costs, runs: list[MeasuredRun]) -> Case:
    index_of = {name: index for index, name in enumerate(of_model.names)}
    slowness = np.argsort(np.argsort(step_alone_s(of_model), kind="stable"))

    def mask(run: MeasuredRun) -> int:
        return sum(1 << index_of[name] for name in run.workers)

    runs.sort(key=lambda run: (len(run.workers), slowness[index_of[run.server]], mask(run)))
    candidates = Candidates(np.array([mask(run) for run in runs]), np.array([index_of[run.server] for run in runs]))
    return Case(
        audit.label, of_model.model, runs[0].repetition, audit.steps, audit.profile, of_model,
        candidates, tuple(runs), _measured(runs, audit.steps),
    )  # fmt: skip


def _measured(runs: list[MeasuredRun], steps: int) -> Estimates:
    watts = [np.nan if run.power_w is None else run.power_w for run in runs]
    return Estimates(np.array([run.time_s(steps) for run in runs]), np.array(watts))


def _check(label: str, of_model: Costs, run: MeasuredRun) -> None:
    what = f"{label}: {run.model} on {'+'.join(run.workers)}"
    for name in run.workers:
        if name not in of_model.names:
            reason = of_model.left_out.get(name, "it is not in the profile")
            raise AuditError(f"{what}: {name} cannot be predicted ({reason}); profile it or leave this run out")
    if run.server not in run.workers:
        raise AuditError(f"{what}: its server {run.server} is no member of the cluster; leave this run out")
    if not run.steps_per_s:
        raise AuditError(f"{what}: no step was made while it was measured; measure it for longer")
    host = of_model.names.index(run.server)
    reachable = of_model.pairs.reachable[:, host]
    unreachable = [n for n in run.workers if n != run.server and not reachable[of_model.names.index(n)]]
    if unreachable:
        link = f"{unreachable[0]}-{run.server}"
        raise AuditError(f"{what}: the link {link} was not measured; profile it or leave this run out")
