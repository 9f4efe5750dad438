"""A recommendation as tables: the best clusters, and the planned one worker by worker."""

from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from backends.strategies.strategy import PARAMETER_SERVER
from planner.paths import PLAN
from planner.plan.recommend import Recommendation, Row
from planner.predict.costs import Costs
from planner.provenance import NAMEPLATE
from planner.units import bytes_text, joules, number, percent, seconds, watts
from planner.views.tables import EMULATED_NOTE, Table, marked, stack, table

NAMEPLATE_NOTE = "± of energy counts errors of measurements only, not that of watts from a nameplate"
TIE_NOTE = "= ties with the best: the measurements cannot tell them apart; profile again for more samples"


def render(found: Recommendation, top: int, path: Path | None, place: int = 1) -> RenderableType:
    """The ``top`` clusters (0: all), the breakdown of the planned one, and what is to be known about them.

    path: where the plan is, None where it was not written; place: which of the ranking it is.
    """
    rows = [found.row(place) for place in range(1, min(len(found), top or len(found)) + 1)]
    sources = zip(found.costs.names, found.costs.power_sources, strict=True)
    stand_ins = {name for name, source in sources if source.emulated}
    unsure = any(source.kind == NAMEPLATE for source in found.costs.power_sources)
    notes = [*remarks(found), *[TIE_NOTE] * _ties(found), *[NAMEPLATE_NOTE] * unsure]
    notes += [EMULATED_NOTE] * bool(stand_ins)
    notes.append(f"profiling took {percent(found.overhead, 2)} of the best's time; {_written(found, path, place)}")
    tables = [_clusters(found, rows, stand_ins), _breakdown(found, place, stand_ins)]
    return stack(tables, [Text(note) for note in notes])


def unwritten(found: Recommendation) -> str:
    """Why a recommendation wrote no plan, and how to have it written."""
    return f"{PLAN} was not changed, because {' and '.join(found.costs.what_if)} is a what-if; -o FILE writes its plan"


def _written(found: Recommendation, path: Path | None, place: int) -> str:
    if path is None:
        return unwritten(found)
    return f"wrote {path}" if place == 1 else f"wrote number {place} to {path}"


def remarks(found: Recommendation) -> list[str]:
    """What the operator must know of a ranking in whatever form it is printed."""
    left_out = [f"left out: {name}: {reason}" for name, reason in found.left_out.items()]
    return [*left_out, *_frameworks(found.costs), *found.notes]


def _frameworks(costs: Costs) -> list[str]:
    """Who computes with what, where not all do with the same."""
    users = {
        framework: [name for name, used in zip(costs.names, costs.frameworks, strict=True) if used == framework]
        for framework in dict.fromkeys(costs.frameworks)
    }
    told = ", ".join(f"{framework} on {' and '.join(names)}" for framework, names in users.items())
    return [f"computed with {told}: what is fastest on each device"] if len(users) > 1 else []


def _clusters(found: Recommendation, rows: list[Row], stand_ins: set[str]) -> Table:
    how = "" if found.costs.strategy.same_as(PARAMETER_SERVER) else f", {found.costs.strategy.text}"
    made = table(
        f"{found.costs.model}{how}, batch {found.costs.batch}, {found.steps:,} steps: "
        f"best {len(rows)} of {len(found)} by {found.metric}",
        ("", "server", "workers", "time", "power", "energy", "± 95 %", "EDP", "± score", "sent", "bottleneck"),
        left=("server", "workers", "bottleneck"),
        optional=("± score", "sent", "± 95 %"),
    )
    ties = _ties(found)
    for place, row in enumerate(rows, 1):
        predicted = row.prediction
        made.add_row(
            f"{place}{'=' if ties and row.tie else ''}",
            marked([row.config.server], stand_ins), marked(row.config.workers, stand_ins),
            seconds(predicted.time_s), watts(predicted.power_w),
            joules(predicted.energy_j), percent(row.energy_uncertainty),
            number(predicted.edp_js, "Js"), percent(_spread(row)), bytes_text(row.network_bytes),
            f"{row.bottleneck} {percent(row.shares[row.bottleneck], 0)}",
        )  # fmt: skip
    return made


def _breakdown(found: Recommendation, place: int, stand_ins: set[str]) -> Table:
    columns = ("worker", "step", "α time", "β time", "α power", "β power", "steps", "watts", "watts from")
    title = f"{'the best' if place == 1 else f'number {place}'}, worker by worker"
    made = table(title, columns, ("worker", "watts from"), ("β power", "α power", "β time", "α time"))
    for worker in found.workers(place):
        made.add_row(
            marked([worker.name], stand_ins), seconds(worker.cycle_s),
            f"{worker.alpha_time:.3f}", f"{worker.beta_time:.3f}",
            number(worker.alpha_power), number(worker.beta_power),
            f"{worker.steps:,.0f}", watts(worker.power_w), worker.power_source.text,
        )  # fmt: skip
    return made


def _ties(found: Recommendation) -> bool:
    """Whether anything ties with the best, which always ties with itself."""
    return int(found.ranking.tied.sum()) > 1


def _spread(row: Row) -> float | None:
    """Half the width of the 95 % interval, as a share of its middle on the logarithmic scale; None where no spread
    is known."""
    low, high = row.interval
    return (high / low) ** 0.5 - 1 if 0 < low < high else None
