"""Runs side by side: the settings in which they differ, and what came out. Pure."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from planner.runs.summary import RunSummary

#: Results by name; what is predicted stands above what was measured.
RESULTS: dict[str, Callable[[RunSummary], float | None]] = {
    "steps made": lambda run: run.steps_made,
    "predicted time_s": lambda run: run.predicted.time_s,
    "time_s": lambda run: run.measured.time_s,
    "predicted power_w": lambda run: run.predicted.power_w,
    "power_w": lambda run: run.measured.power_w,
    "predicted energy_j": lambda run: run.predicted.energy_j,
    "energy_j": lambda run: run.measured.energy_j,
    "predicted edp_js": lambda run: run.predicted.edp_js,
    "edp_js": lambda run: run.measured.edp_js,
    "step of the target": lambda run: run.target.step if run.target else None,
    "evaluated after step": lambda run: run.evaluation.step if run.evaluation else None,
    "loss": lambda run: run.evaluation.loss if run.evaluation else None,
}


class ComparedResult(NamedTuple):
    """One result of all runs, None where a run has none.

    differences: from the first run, as shares of its value; None where either is unknown or the
        first is 0.
    """

    values: tuple[float | None, ...]
    differences: tuple[float | None, ...]


class RunComparison(NamedTuple):
    """Several runs side by side.

    settings: those that differ, by name, a value a run; None where a run lacks one.
    results: by name; those that no run has are left out.
    """

    runs: tuple[RunSummary, ...]
    settings: dict[str, tuple[Any, ...]]
    results: dict[str, ComparedResult]


def compare(runs: Sequence[RunSummary]) -> RunComparison:
    """Compare two or more runs; the first is what the others are compared with."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    settings = {name: tuple(run.settings.get(name) for run in runs) for name in names}
    values = {name: tuple(of(run) for run in runs) for name, of in RESULTS.items()}
    for metric in dict.fromkeys(name for run in runs if run.evaluation for name in run.evaluation.metrics):
        values[metric] = tuple(run.evaluation.metrics.get(metric) if run.evaluation else None for run in runs)
    return RunComparison(
        tuple(runs),
        {name: each for name, each in settings.items() if any(value != each[0] for value in each)},
        {
            name: ComparedResult(each, tuple(_difference(value, each[0]) for value in each))
            for name, each in values.items()
            if any(value is not None for value in each)
        },
    )


def _difference(value: float | None, first: float | None) -> float | None:
    return None if value is None or not first else value / first - 1.0
