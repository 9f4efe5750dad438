"""Power models as tables and JSON: what a fit found, how a model does on other data, what kinds there are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import RenderableType

from planner.views.tables import stack, table

if TYPE_CHECKING:
    from power_models.columns import Choice
    from power_models.evaluate import Scores
    from power_models.modelfile import Model

#: Rows outside of the fitted ranges that are named one by one.
NAMED = 5


class Fit(NamedTuple):
    """What a fit compared, on what, and what it chose and saved."""

    scores: Sequence["Scores"]
    unsuitable: Mapping[str, str]
    choice: "Choice"
    groups: Sequence[str]
    folds: int
    model: "Model"
    saved: Path

    def to_json(self) -> dict[str, Any]:
        """{"models": [{"name", "mape", "mape_stdev", "rmse", "rmse_stdev", "coverage"}], "chosen", "saved", …}.

        mape: per cent; rmse: in the target's unit; coverage: share of 0 to 1.
        """
        return {
            "models": [each._asdict() for each in self.scores],
            "chosen": self.model.name,
            "saved": str(self.saved),
            "target": self.model.target,
            "unit": self.model.unit or None,
            "rows": self.model.rows,
            "groups": list(self.groups),
            "folds": self.folds,
            "features": list(self.choice.features),
            "left_out": dict(self.choice.left_out),
            "unsuitable": dict(self.unsuitable),
        }

    def render(self) -> RenderableType:
        chosen = self.model.name
        held = f"by {', '.join(self.groups)}" if self.groups else "row by row"
        title = f"{self.model.target}, {self.model.rows} rows, {self.folds} folds {held}"
        columns = ("model", "MAPE %", "±", f"RMSE {self.model.unit}".strip(), "±", "in 90 %")
        made = table(title, columns, left=("model",))
        for each in self.scores:
            name = f"{each.name} (chosen)" if each.name == chosen else each.name
            numbers = (each.mape, each.mape_stdev, each.rmse, each.rmse_stdev)
            made.add_row(name, *(f"{value:.3g}" for value in numbers), f"{100 * each.coverage:.0f} %")
        notes = [f"features: {', '.join(self.choice.features)}"]
        notes += [f"left out: {name} ({reason})" for name, reason in self.choice.left_out.items()]
        notes += [f"not fitted: {name}: {reason}" for name, reason in self.unsuitable.items()]
        return stack([made], [*notes, self.model.describe(), f"wrote {self.saved}"])


class Evaluation(NamedTuple):
    """A saved model held against a table. outside: the lines beyond what it was fitted on, with the features."""

    model: "Model"
    rows: int
    mape: float
    rmse: float
    coverage: float | None
    outside: Mapping[int, Sequence[str]]

    def to_json(self) -> dict[str, Any]:
        """{"model", "target", "unit", "rows", "mape", "rmse", "coverage", "extrapolated": [{"line", "features"}]}."""
        lines = [{"line": line, "features": list(names)} for line, names in self.outside.items()]
        return {
            "model": self.model.name,
            "target": self.model.target,
            "unit": self.model.unit or None,
            "rows": self.rows,
            "mape": self.mape,
            "rmse": self.rmse,
            "coverage": self.coverage,
            "extrapolated": lines,
        }

    def render(self) -> RenderableType:
        made = table(self.model.describe(), ("rows", "MAPE %", f"RMSE {self.model.unit}".strip(), "in 90 %", "outside"))
        inside = "unknown" if self.coverage is None else f"{100 * self.coverage:.0f} %"
        made.add_row(str(self.rows), f"{self.mape:.3g}", f"{self.rmse:.3g}", inside, str(len(self.outside)))
        notes = [f"line {line}: outside of what was fitted: {', '.join(names)}" for line, names in self.outside.items()]
        more = [f"… and {len(notes) - NAMED} more lines"] if len(notes) > NAMED else []
        return stack([made], [*notes[:NAMED], *more])


def kinds_json(summaries: Mapping[str, str], saved: Mapping[str, "Model"]) -> dict[str, Any]:
    """{"models": [{"name", "summary"}], "saved": [{"file", "model", "target", "unit", "features", "rows"}]}."""
    return {
        "models": [{"name": name, "summary": summary} for name, summary in summaries.items()],
        "saved": [_saved(file, model) for file, model in saved.items()],
    }


def kinds(summaries: Mapping[str, str], saved: Mapping[str, "Model"]) -> RenderableType:
    """The kinds of models, or those in files where there are any."""
    if saved:
        made = table("saved models", ("file", "what it is"), left=("file", "what it is"))
        for file, model in saved.items():
            made.add_row(file, model.describe())
        return made
    made = table("kinds of models", ("model", "what it is"), left=("model", "what it is"))
    for name, summary in summaries.items():
        made.add_row(name, summary)
    return made


def _saved(file: str, model: "Model") -> dict[str, Any]:
    return {
        "file": file,
        "model": model.name,
        "target": model.target,
        "unit": model.unit or None,
        "features": list(model.features),
        "rows": model.rows,
        "about": dict(model.about),
    }
