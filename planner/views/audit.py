"""This view shows measured clusters beside their predictions."""

from collections.abc import Sequence
from typing import Any

from rich.console import RenderableType

from planner.audit.outcome import Outcome, Verdict
from planner.plan.recommendation import Recommendation
from planner.units import percent, seconds, watts
from planner.views.tables import EMULATED_NOTE, TextTable, marked, stack
from profilers.records.json_values import json_value

FIGURES = ("predicted", "measured", "error", "predicted W", "measured W")
WATTS_NOTE = "watts are measured only where a sensor of the whole device measured every member"


def render(ranked: Recommendation, outcomes: Sequence[Outcome], found: Verdict | None) -> RenderableType:
    """A row for each cluster, and whether the choice was right."""
    title = f"{ranked.settings.model}: seconds of a step, {len(outcomes)} of {len(ranked)} clusters by {ranked.metric}"
    made = TextTable(title, ("", "server", "workers", *FIGURES), left=("server", "workers"))
    for each in outcomes:
        made.add_row(
            str(each.place), marked([each.server], each.stand_ins), marked(each.workers, each.stand_ins),
            seconds(each.predicted_s), seconds(each.measured_s), "-" if each.error is None else f"{each.error:+.1%}",
            watts(each.predicted_w), watts(each.measured_w),
        )  # fmt: skip
    notes = [] if found is None else [_said(found)]
    notes += [f"number {each.place} was not measured: {each.failure}" for each in outcomes if each.failure]
    notes += [WATTS_NOTE] * any(each.measured_s is not None and each.measured_w is None for each in outcomes)
    notes += [EMULATED_NOTE] * any(each.stand_ins for each in outcomes)
    return stack([made], notes)


def to_json(ranked: Recommendation, outcomes: Sequence[Outcome], found: Verdict | None) -> dict[str, Any]:
    """{"model", "metric", "clusters", "hit", "regret"}; the last two may be None."""
    return {
        "model": ranked.settings.model,
        "metric": ranked.metric,
        "clusters": [{**json_value(each), "error": each.error} for each in outcomes],
        "hit": None if found is None else found.hit,
        "regret": None if found is None else found.regret,
    }


def _said(found: Verdict) -> str:
    if found.hit:
        return "The first cluster was the best of those measured."
    return f"Number {found.best} was the best of those measured; the first one is {percent(found.regret)} worse."
