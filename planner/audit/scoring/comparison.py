"""A comparison relates the measurements of a configuration to its predictions."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from planner.audit.scoring.cases import Case, Estimates, Key
from planner.audit.scoring.measured import SteadyWorker
from planner.predict.cluster_cycle import BOTTLENECKS
from planner.predict.clusters import ClusterConfig
from planner.predict.predict import Prediction, Predictions, predict
from planner.provenance import Provenance

#: Compared quantities; ``step`` is the time between two steps of all workers together.
QUANTITIES = ("step", "time", "power", "energy", "edp")


class Compared(NamedTuple):
    """One quantity as measured and as predicted, None where unknown.

    error: predicted / measured - 1.
    steady_error: the same without drift, predicted for the speed of the machines during the run.
    """

    measured: float | None
    predicted: float | None
    error: float | None
    steady_error: float | None


class WorkerComparison(NamedTuple):
    """One worker: its cycle T_i^C, its build time with what first steps take longer, and watts.

    drift: how many times as long its reference loop took as at the speed that is predicted for;
        1.0 where unknown.
    provenance: source of the watts.
    """

    cycle_s: Compared
    build_s: Compared
    power_w: Compared
    drift: float
    provenance: Provenance


class Comparison(NamedTuple):
    """One configuration, with medians over its repetitions.

    figures: by QUANTITIES.
    bottleneck: the largest part of the workers' time, as predicted.
    worst_error: of the predicted time in a single run.
    off: the worker whose steps/s differ most from the prediction.
    """

    audit: str
    model: str
    config: ClusterConfig
    repetitions: int
    figures: dict[str, Compared]
    workers: dict[str, WorkerComparison]
    bottleneck: str
    worst_error: float
    off: str
    emulated: bool

    @property
    def alone(self) -> bool:
        return len(self.config.workers) == 1


def compare(cases: Sequence[Case], driftless: Sequence[Sequence[Predictions]]) -> tuple[Comparison, ...]:
    """All configurations, in the order in which they first occur.

    driftless: ``without_drift`` of every case.
    """
    runs: dict[Key, list[Comparison]] = defaultdict(list)
    for case, of_runs in zip(cases, driftless, strict=True):
        predictions = predict(case.costs, case.candidates, case.steps)
        for index, (key, of_run) in enumerate(zip(case.keys, of_runs, strict=True)):
            runs[key].append(_of_run(case, index, key, predictions, of_run))
    return tuple(map(_medians, runs.values()))


def without_drift(case: Case) -> list[Predictions]:
    """Of each run, predictions of its configuration for devices as fast as they were meanwhile."""
    return [_without_drift(case, index) for index in range(len(case.runs))]


def estimates(of_runs: Sequence[Predictions]) -> Estimates:
    """Time and power of configurations that were predicted one by one."""
    return Estimates(*(np.concatenate([getattr(found, name) for found in of_runs]) for name in Estimates._fields))


def _of_run(case: Case, index: int, key: Key, predictions: Predictions, driftless: Predictions) -> Comparison:
    figures = _figures(case, index, predictions, driftless)
    drifts = _drifts(case, index)
    workers = {name: _worker(case, index, name, drifts[name], predictions, driftless) for name in key[2].workers}
    return Comparison(
        *key, 1, figures, workers,
        bottleneck=BOTTLENECKS[int(np.argmax(predictions.shares[index]))],
        worst_error=figures["time"].error or 0.0,
        off=_furthest_off(workers),
        emulated=case.runs[index].emulated,
    )  # fmt: skip


def _medians(runs: Sequence[Comparison]) -> Comparison:
    workers = {name: _median_worker([run.workers[name] for run in runs]) for name in runs[0].workers}
    return runs[0]._replace(
        repetitions=len(runs),
        figures={quantity: _median(run.figures[quantity] for run in runs) for quantity in QUANTITIES},
        workers=workers,
        worst_error=max((run.worst_error for run in runs), key=abs),
        off=_furthest_off(workers),
        emulated=any(run.emulated for run in runs),
    )


def _without_drift(case: Case, index: int) -> Predictions:
    """One configuration, predicted for devices as fast as they were while it ran."""
    return predict(case.costs, case.candidates.at(np.array([index])), case.steps)


def _drifts(case: Case, index: int) -> dict[str, float]:
    """``WorkerComparison.drift`` by worker."""
    return dict.fromkeys(case.runs[index].workers, 1.0)


def _figures(case: Case, index: int, predictions: Predictions, driftless: Predictions) -> dict[str, Compared]:
    run = case.runs[index]
    values = [
        _quantities(1 / run.steps_per_s, run.at(case.steps)),
        _quantities(*_predicted(predictions, index)),
        _quantities(*_predicted(driftless, 0)),
    ]
    return {quantity: _compared(*(each[quantity] for each in values)) for quantity in QUANTITIES}


def _predicted(predictions: Predictions, index: int) -> tuple[float, Prediction]:
    return 1 / float((1 / predictions.cycle_s[index]).sum()), predictions.one(index)


def _quantities(step_s: float, of: Prediction) -> dict[str, float | None]:
    return dict(zip(QUANTITIES, (step_s, of.time_s, of.power_w, of.energy_j, of.edp_js), strict=True))


def _worker(
    case: Case, index: int, name: str, drift: float, predictions: Predictions, driftless: Predictions
) -> WorkerComparison:
    device = case.costs.names.index(name)
    measured: SteadyWorker = case.runs[index].workers[name]
    build_s = float((case.costs.devices.build_s + case.costs.devices.first_step_s)[device])
    watts = (float(predictions.device_w[index, device]), float(driftless.device_w[0, device]))
    return WorkerComparison(
        _compared(measured.cycle_s, float(predictions.cycle_s[index, device]), float(driftless.cycle_s[0, device])),
        _compared(measured.build_s, build_s, build_s),
        _compared(measured.watts, *watts),
        drift,
        measured.provenance,
    )


def _compared(measured: float | None, predicted: float | None, driftless: float | None) -> Compared:
    measured, predicted, driftless = (_finite(value) for value in (measured, predicted, driftless))
    return Compared(measured, predicted, _error(predicted, measured), _error(driftless, measured))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _error(predicted: float | None, measured: float | None) -> float | None:
    return predicted / measured - 1 if predicted is not None and measured else None


def _median(values: Iterable[Compared]) -> Compared:
    """Medians of each figure over the runs in which it is known."""
    columns = ([value for value in column if value is not None] for column in zip(*values, strict=True))
    return Compared(*(median(known) if known else None for known in columns))


def _median_worker(parts: Sequence[WorkerComparison]) -> WorkerComparison:
    cycle_s, build_s, power_w = (_median(each) for each in zip(*(part[:3] for part in parts), strict=True))
    return WorkerComparison(cycle_s, build_s, power_w, median(part.drift for part in parts), parts[0].provenance)


def _furthest_off(workers: Mapping[str, WorkerComparison]) -> str:
    def difference(name: str) -> float:
        cycle = workers[name].cycle_s
        measured, predicted = (1 / each if each else 0.0 for each in (cycle.measured, cycle.predicted))
        return abs(measured - predicted)

    return max(workers, key=difference)
