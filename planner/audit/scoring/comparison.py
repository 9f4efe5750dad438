"""What was measured of every configuration beside what had been predicted, and which term of it is off."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from planner.audit.scoring.cases import Case, Estimates, Key
from planner.audit.scoring.measured import Steady
from planner.predict.clusters import Candidates, ClusterConfig
from planner.predict.predict import Prediction, Predictions, predict
from planner.predict.step_cycle import BOTTLENECKS
from planner.provenance import Provenance

#: What is compared of a configuration: ``step`` is the time between two steps of all workers together.
QUANTITIES = ("step", "time", "power", "energy", "edp")


class Compared(NamedTuple):
    """A quantity measured and predicted, None where unknown, and predicted / measured - 1.

    steady_error: with the machine's drift removed, as predicted from the gradient times that this run had.
    """

    measured: float | None
    predicted: float | None
    error: float | None
    steady_error: float | None


class Part(NamedTuple):
    """One worker: its cycle T_i^C and its watts, its build time, and its drift since it was profiled."""

    cycle_s: Compared
    build_s: Compared
    power_w: Compared
    drift: float
    provenance: Provenance


class Comparison(NamedTuple):
    """One configuration, medians over its repetitions.

    figures: by QUANTITIES; bottleneck: where the prediction says that most of the workers' time goes; worst_error:
    of the predicted time in a single run; off: the worker whose steps/s are farthest from what was predicted.
    """

    audit: str
    model: str
    config: ClusterConfig
    repetitions: int
    figures: dict[str, Compared]
    workers: dict[str, Part]
    bottleneck: str
    worst_error: float
    off: str
    emulated: bool

    @property
    def alone(self) -> bool:
        """Whether it is a device alone."""
        return len(self.config.workers) == 1


class _Run(NamedTuple):
    figures: dict[str, Compared]
    workers: dict[str, Part]
    bottleneck: str
    emulated: bool


def judge(contests: Sequence[Case]) -> tuple[Comparison, ...]:
    """All configurations, in the order in which they first occur."""
    runs: dict[Key, list[_Run]] = defaultdict(list)
    for contest in contests:
        for key, run in zip(contest.keys, _runs(contest), strict=True):
            runs[key].append(run)
    return tuple(_judged(key, each) for key, each in runs.items())


def undrifted(contest: Case) -> Estimates:
    """What the planner would have predicted for devices as fast as they were in each of these very runs."""
    found = [_without_drift(contest, index) for index in range(len(contest.runs))]
    return Estimates(np.concatenate([each.time_s for each in found]), np.concatenate([each.power_w for each in found]))


def _judged(key: Key, runs: Sequence[_Run]) -> Comparison:
    workers = {name: _middle_part([run.workers[name] for run in runs]) for name in key[2].workers}
    return Comparison(
        *key,
        repetitions=len(runs),
        figures={quantity: _middle(run.figures[quantity] for run in runs) for quantity in QUANTITIES},
        workers=workers,
        bottleneck=runs[0].bottleneck,
        worst_error=max((run.figures["time"].error or 0.0 for run in runs), key=abs),
        off=max(workers, key=lambda name: _rate_apart(workers[name].cycle_s)),
        emulated=any(run.emulated for run in runs),
    )


def _runs(contest: Case) -> Iterator[_Run]:
    predictions = predict(contest.costs, contest.candidates, contest.steps)
    for index, run in enumerate(contest.runs):
        steady = _without_drift(contest, index)
        yield _Run(
            figures=_figures(contest, index, predictions, steady),
            workers={name: _part(contest, index, name, predictions, steady) for name in contest.configs[index].workers},
            bottleneck=BOTTLENECKS[int(np.argmax(predictions.shares[index]))],
            emulated=run.emulated,
        )


def _without_drift(contest: Case, index: int) -> Predictions:
    """One configuration, predicted for devices as fast as they were while it ran.

    A worker beside the server spends processor time on what passes through its host as well, which is what is to be
    predicted: how slow its device was is taken from its run alone in the same repetition, and unknown without one. As a
    machine drifts from run to run, it counts for no more than all that this run spent.
    """
    known, config = contest.costs, contest.configs[index]
    alone = {config.workers: run for config, run in zip(contest.configs, contest.runs, strict=True)}
    drift = np.ones(len(known.names))
    for name in config.workers:
        seen = contest.runs[index].workers[name].drift
        run = alone.get((name,))
        unshared = 1.0 if run is None else run.workers[name].drift
        drift[known.names.index(name)] = min(seen, unshared) if name == config.server else seen
    drifted = known.with_gradients(known.devices.gradient_s * drift)
    masks, hosts = contest.candidates
    return predict(drifted, Candidates(masks[index : index + 1], hosts[index : index + 1]), contest.steps)


def _figures(contest: Case, index: int, predictions: Predictions, steady: Predictions) -> dict[str, Compared]:
    run = contest.runs[index]
    values = [
        _quantities(1 / run.steps_per_s, run.at(contest.steps)),
        _quantities(*_predicted(predictions, index)),
        _quantities(*_predicted(steady, 0)),
    ]
    return {quantity: _beside(*(each[quantity] for each in values)) for quantity in QUANTITIES}


def _predicted(predictions: Predictions, index: int) -> tuple[float, Prediction]:
    return 1 / float((1 / predictions.cycle_s[index]).sum()), predictions.one(index)


def _quantities(step_s: float, of: Prediction) -> dict[str, float | None]:
    return dict(zip(QUANTITIES, (step_s, of.time_s, of.power_w, of.energy_j, of.edp_js), strict=True))


def _part(contest: Case, index: int, name: str, predictions: Predictions, steady: Predictions) -> Part:
    device = contest.costs.names.index(name)
    measured: Steady = contest.runs[index].workers[name]
    build_s = float(contest.costs.devices.build_s[device])
    watts = (float(predictions.device_w[index, device]), float(steady.device_w[0, device]))
    return Part(
        _beside(measured.cycle_s, float(predictions.cycle_s[index, device]), float(steady.cycle_s[0, device])),
        _beside(measured.build_s, build_s, build_s),
        _beside(measured.watts, *watts),
        measured.drift,
        measured.provenance,
    )


def _beside(measured: float | None, predicted: float | None, steady: float | None) -> Compared:
    measured, predicted, steady = (_finite(value) for value in (measured, predicted, steady))
    return Compared(measured, predicted, _error(predicted, measured), _error(steady, measured))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _error(predicted: float | None, measured: float | None) -> float | None:
    return predicted / measured - 1 if predicted is not None and measured else None


def _middle(values: Iterable[Compared]) -> Compared:
    """Medians of each, of the runs in which it is known."""
    columns = ([value for value in column if value is not None] for column in zip(*values, strict=True))
    return Compared(*(median(known) if known else None for known in columns))


def _middle_part(parts: Sequence[Part]) -> Part:
    return Part(
        _middle(part.cycle_s for part in parts),
        _middle(part.build_s for part in parts),
        _middle(part.power_w for part in parts),
        median(part.drift for part in parts),
        parts[0].provenance,
    )


def _rate_apart(cycle: Compared) -> float:
    measured, predicted = (1 / each if each else 0.0 for each in (cycle.measured, cycle.predicted))
    return abs(measured - predicted)
