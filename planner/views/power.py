"""Measured energy, and fits, evaluations and kinds of power models become tables and JSON."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from planner.provenance import Provenance
from planner.units import joules, percent, seconds, watts
from planner.views.tables import EMULATED_NOTE, TextTable, stack
from profilers.records.json_values import json_value
from profilers.records.readings import UNAVAILABLE

if TYPE_CHECKING:
    from planner.power.fit import Evaluation, Fit
    from planner.power.measure import EnergyMeasurement
    from power_models.base import PowerModel

#: Rows outside of the fitted ranges that are named one by one.
NAMED = 5


def fit(found: "Fit") -> RenderableType:
    """The kinds that were compared, their errors on held-out rows, and the one chosen."""
    chosen = found.model.name
    held = f"by {', '.join(found.groups)}" if found.groups else "row by row"
    title = f"{found.model.target}, {found.model.rows} rows, {found.folds} folds {held}"
    columns = ("model", "MAPE %", "± MAPE", f"RMSE {found.model.unit}".strip(), "± RMSE", "in 90 %", "by fold")
    made = TextTable(title, columns, left=("model",))
    for each in found.scores:
        name = f"{each.name} (chosen)" if each.name == chosen else each.name
        numbers = (each.mape, each.mape_stdev, each.rmse, each.rmse_stdev)
        by_fold = f"{100 * each.coverage_least:.0f} to {100 * each.coverage_greatest:.0f} %"
        made.add_row(name, *(f"{value:.3g}" for value in numbers), f"{100 * each.coverage:.0f} %", by_fold)
    notes = [f"features: {', '.join(found.choice.features)}"]
    notes += [f"left out: {name} ({reason})" for name, reason in found.choice.left_out.items()]
    notes += [f"not fitted: {name}: {reason}" for name, reason in found.unsuitable.items()]
    if found.beats_mean is False:
        notes.append("no kind errs less than the mean of all rows: these features do not predict an unseen group")
    return stack([made], [*notes, found.model.describe(), f"wrote {found.saved}"])


def evaluation(seen: "Evaluation") -> RenderableType:
    """The errors of a saved model on another table."""
    made = TextTable(seen.model.describe(), ("rows", "MAPE %", f"RMSE {seen.model.unit}".strip(), "in 90 %", "outside"))
    inside = "unknown" if seen.coverage is None else f"{100 * seen.coverage:.0f} %"
    made.add_row(str(seen.rows), f"{seen.mape:.3g}", f"{seen.rmse:.3g}", inside, str(len(seen.outside)))
    notes = [
        f"extrapolated: {each.name} in {count} lines, fitted on {each.text} only; the interval was not tested there"
        for each, count in seen.exceeded.items()
    ]
    lines = [f"line {line}: outside of what was fitted: {', '.join(names)}" for line, names in seen.outside.items()]
    more = [f"and {len(lines) - NAMED} more lines"] if len(lines) > NAMED else []
    return stack([made], [*notes, *lines[:NAMED], *more])


def kinds_json(summaries: Mapping[str, str], saved: Mapping[str, "PowerModel"]) -> dict[str, Any]:
    """All kinds in "models", and the files in "saved"."""
    return {
        "models": [{"name": name, "summary": summary} for name, summary in summaries.items()],
        "saved": [_saved(file, model) for file, model in saved.items()],
    }


def kinds(summaries: Mapping[str, str], saved: Mapping[str, "PowerModel"]) -> RenderableType:
    """The kinds of models, or those in files where there are any."""
    texts = {file: model.describe() for file, model in saved.items()} or summaries
    columns = ("file" if saved else "model", "what it is")
    made = TextTable("saved models" if saved else "kinds of models", columns, left=columns)
    for name, text in texts.items():
        made.add_row(name, text)
    return made


def _saved(file: str, model: "PowerModel") -> dict[str, Any]:
    return {
        "file": file,
        "model": model.name,
        "target": model.target,
        "unit": model.unit or None,
        "features": list(model.features),
        "rows": model.rows,
        "about": dict(model.about),
    }


def measurement_json(measured: "EnergyMeasurement") -> dict[str, Any]:
    """One measurement.

    energy_j, watts: null if unavailable.
    uncertainty: half the 95 % interval of the energy, as a share.
    """
    return {
        "device": measured.device,
        "command": list(measured.command),
        "returncode": measured.returncode,
        "duration_s": measured.duration_s,
        "energy_j": measured.energy_j,
        "above_idle_j": measured.above_idle_j,
        "uncertainty": measured.uncertainty,
        "watts": measured.busy.watts,
        "idle_watts": measured.idle.watts,
        "provenance": json_value(measured.busy.provenance),
        "idle_provenance": json_value(measured.idle.provenance),
        "notes": list(measured.notes),
    }


def measurement(measured: "EnergyMeasurement") -> RenderableType:
    """A row of figures, then the sources of the watts and notes on them."""
    emulated = measured.busy.provenance.emulated or measured.idle.provenance.emulated
    title = f"{measured.device}{'*' * emulated}: {' '.join(measured.command)}"
    made = TextTable(title, ("time", "energy", "±", "above idle", "power", "idle"))
    made.add_row(
        seconds(measured.duration_s), joules(measured.energy_j), percent(measured.uncertainty),
        joules(measured.above_idle_j), watts(measured.busy.watts), watts(measured.idle.watts),
    )  # fmt: skip
    notes = [f"watts: {_source(measured.busy.provenance)}"]
    if measured.idle.provenance != measured.busy.provenance:
        notes.append(f"idle watts: {_source(measured.idle.provenance)}")
    return stack([made], [*notes, *measured.notes, *([EMULATED_NOTE] * emulated)])


def _source(of: Provenance) -> str:
    """The source of watts, or the reason why there are none."""
    return f"{of.text}: {of.detail}" if of.kind == UNAVAILABLE else of.text
