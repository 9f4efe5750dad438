"""This view shows runs in a table, or side by side."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import RenderableType

from backends.jobs.job import ACCURACY
from backends.strategies.engine import OWN
from planner.runs.comparison import ComparedResult, RunComparison
from planner.runs.summary import FINISHED, RunSummary, RunTarget
from planner.units import joules, number, percent, seconds, watts
from planner.views.tables import EMULATED_NOTE, TextTable, marked, stack
from profilers.records.json_values import json_value

#: How a result is shown, by the end of its name; other results are numbers.
_UNITS: dict[str, Callable[[float | None], str]] = {
    "_s": seconds, "_w": watts, "_j": joules, "_js": lambda value: number(value, "Js"),
}  # fmt: skip


def to_json(runs: Sequence[RunSummary]) -> dict[str, Any]:
    """The fields of each run, under "runs"."""
    return {"runs": [json_value(run) for run in runs]}


def render(runs: Sequence[RunSummary]) -> RenderableType:
    """A row a run, with predicted figures in front of measured ones."""
    columns = (
        "run", "began", "model", "cluster", "exchange", "steps", "predicted", "time", "predicted energy", "energy",
        "last evaluation", "target", "state",
    )  # fmt: skip
    words = ("run", "model", "cluster", "exchange", "last evaluation", "target", "state")
    optional = ("began", "predicted energy", "exchange", "predicted", "target", "energy", "model")
    made = TextTable("1 run" if len(runs) == 1 else f"{len(runs)} runs", columns, left=words, optional=optional)
    for run in runs:
        made.add_row(
            run.name, run.date.replace("T", " "), run.planned.model or "-", _cluster(run), _exchange(run), _steps(run),
            seconds(run.predicted.time_s), seconds(run.measured.time_s), joules(run.predicted.energy_j),
            joules(run.measured.energy_j), _scores(run), _target(run.target), run.state,
        )  # fmt: skip
    notes = [f"{run.path}: {run.state}: {run.reason}" for run in runs if run.reason and run.state != FINISHED]
    notes += [EMULATED_NOTE] * any(run.stand_ins for run in runs)
    return stack([made], notes)


def comparison_to_json(compared: RunComparison) -> dict[str, Any]:
    """The runs, the settings that differ and the results, each as lists in the runs' order."""
    made: dict[str, Any] = json_value(compared)
    return made


def render_comparison(compared: RunComparison) -> RenderableType:
    """A column a run; in brackets, the difference from the first one."""
    names = [f"{place}. {run.name}" for place, run in enumerate(compared.runs, 1)]
    settings = TextTable("settings that differ", ("", *names), left=("", *names))
    for name, values in compared.settings.items():
        settings.add_row(name.replace("_", " "), *("-" if value is None else str(value) for value in values))
    results = TextTable("results", (" ", *names), left=(" ",))
    results.add_row("state", *(run.state for run in compared.runs))
    for name, result in compared.results.items():
        results.add_row(*_result_row(name, result))
    notes = [] if compared.settings else ["no setting differs"]
    notes += [EMULATED_NOTE.lstrip("* ")] * any(run.stand_ins for run in compared.runs)
    return stack([settings, results] if compared.settings else [results], notes)


def _result_row(name: str, result: ComparedResult) -> list[str]:
    label, _, unit = name.rpartition("_")
    text = _UNITS.get(f"_{unit}") if label else None
    shown = text or (percent if name == ACCURACY else _count_or_number)
    cells = [label if text else name]
    for place, (value, difference) in enumerate(zip(result.values, result.differences, strict=True)):
        change = "" if not place or difference is None else f" ({100 * difference:+.1f} %)"
        cells.append(shown(value) + change)
    return cells


def _count_or_number(value: float | None) -> str:
    return f"{value:,}" if isinstance(value, int) else number(value)


def _cluster(run: RunSummary) -> str:
    if not run.planned.workers:
        return "-"
    names = marked(run.planned.workers, run.stand_ins)
    return names if len(run.planned.workers) == 1 else f"{names} (server {run.planned.server})"


def _exchange(run: RunSummary) -> str:
    """The strategy of planner's own engine, or another engine."""
    return (run.planned.strategy if run.planned.engine in (OWN, None) else f"--engine {run.planned.engine}") or "-"


def _steps(run: RunSummary) -> str:
    made, planned = run.steps_made, run.planned.steps
    if made is None or planned is None:
        return "-"
    return f"{made:,}" if made == planned else f"{made:,} of {planned:,}"


def _scores(run: RunSummary) -> str:
    if run.evaluation is None:
        return "-"
    metrics = run.evaluation.metrics.items()
    scores = (f"{name} {percent(value) if name == ACCURACY else number(value)}" for name, value in metrics)
    return ", ".join((f"loss {number(run.evaluation.loss)}", *scores))


def _target(target: RunTarget | None) -> str:
    if target is None:
        return "-"
    wanted = f"{target.metric}={target.value:g}"
    return f"{wanted} not reached" if target.step is None else f"{wanted} after {target.step:,}"
