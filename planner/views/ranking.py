"""This view shows a recommendation: the best clusters, and the workers of the planned one."""

from pathlib import Path

from rich.console import RenderableType

from backends.strategies.engine import OWN
from backends.strategies.strategy import PARAMETER_SERVER
from planner.paths import PLAN
from planner.plan.recommendation import Recommendation, Row
from planner.plan.request import AUTO
from planner.predict.costs import Costs
from planner.provenance import NAMEPLATE
from planner.units import bytes_text, joules, number, percent, seconds, watts
from planner.views.tables import EMULATED_NOTE, TextTable, marked, stack

INTERVAL_NOTE = "±: half of the 95 % interval"
NAMEPLATE_NOTE = "± energy leaves out the error of watts from the fleet file, which is not known"
#: Titles of what is predicted of a cluster.
FIGURES = ("time", "power", "energy", "± energy", "EDP", "± score", "traffic", "bottleneck")
TIE_NOTE = "= ties with the best: the difference is smaller than the error of the measurements"


def render(found: Recommendation, top: int, path: Path | None, place: int = 1) -> RenderableType:
    """The ``top`` clusters (0: all), the breakdown of the planned one, and what is to be known
    about them.

    path: where the plan is, None where it was not written; place: which of the ranking it is.
    """
    rows = [found.row(place) for place in range(1, min(len(found), top or len(found)) + 1)]
    sources = [each for costs in found.all_costs for each in zip(costs.names, costs.power_sources, strict=True)]
    stand_ins = {name for name, source in sources if source.emulated}
    nameplate = any(source.kind == NAMEPLATE for _, source in sources)
    notes = [*remarks(found), *[TIE_NOTE] * _ties(found), INTERVAL_NOTE, *[NAMEPLATE_NOTE] * nameplate]
    notes += [EMULATED_NOTE] * bool(stand_ins)
    best_s = seconds(found.row(1).prediction.time_s)
    notes.append(f"profiling took {seconds(found.profiling_s)}; the best cluster would train for {best_s}")
    notes.append(_written(found, path, place))
    tables = [_clusters(found, rows, stand_ins), _breakdown(found, place, stand_ins)]
    tables += _streams(found, place, stand_ins)
    return stack(tables, notes)


def unwritten(found: Recommendation) -> str:
    """Why a recommendation wrote no plan, and how to have it written."""
    return f"{PLAN} was not changed, because {' and '.join(found.costs.what_if)} is a what-if; -o FILE writes its plan"


def _written(found: Recommendation, path: Path | None, place: int) -> str:
    if path is None:
        return unwritten(found)
    return f"wrote {path}" if place == 1 else f"wrote number {place} to {path}"


def remarks(found: Recommendation) -> list[str]:
    """Remarks on a ranking that belong to it in whatever form it is printed."""
    left_out = [f"left out: {name}: {reason}" for name, reason in found.costs.left_out.items()]
    return [*left_out, *_frameworks(found), *found.notes]


def _frameworks(found: Recommendation) -> list[str]:
    """The framework of each device, where they differ."""
    users = {
        framework: [name for name, used in found.frameworks.items() if used == framework]
        for framework in dict.fromkeys(found.frameworks.values())
    }
    text = "; ".join(f"{framework} on {', '.join(names)}" for framework, names in users.items())
    return [f"frameworks, the fastest on each device: {text}"] if len(users) > 1 else []


def _batch(costs: Costs) -> str:
    return f"batch {costs.batch}" if costs.shares is None else f"global batch {costs.shares.size}"


def _clusters(found: Recommendation, rows: list[Row], stand_ins: set[str]) -> TextTable:
    how = "" if found.costs.strategy.same_as(PARAMETER_SERVER) else f", {found.costs.strategy.text}"
    how = how if found.costs.torch is None else ""
    how += "" if found.engine == OWN else f", --engine {found.engine}"
    engine = ("engine",) if found.engine == AUTO else ()
    made = TextTable(
        f"{found.costs.model}{how}, {_batch(found.costs)}, {found.steps:,} steps: "
        f"best {len(rows)} of {len(found)} by {found.metric}",
        ("", *engine, "server", "workers", *FIGURES),
        left=(*engine, "server", "workers", "bottleneck"),
        optional=("± score", "traffic", "± energy", "bottleneck", "power"),
    )
    ties = _ties(found)
    for place, row in enumerate(rows, 1):
        predicted = row.prediction
        made.add_row(
            f"{place}{'=' if ties and row.tie else ''}",
            *[row.engine for _ in engine],
            marked([row.config.server], stand_ins), marked(row.config.workers, stand_ins),
            seconds(predicted.time_s), watts(predicted.power_w),
            joules(predicted.energy_j), percent(row.energy_uncertainty),
            number(predicted.edp_js, "Js"), percent(_spread(row)), bytes_text(row.network_bytes),
            f"{row.bottleneck} {percent(row.shares[row.bottleneck], 0)}",
        )  # fmt: skip
    return made


def _breakdown(found: Recommendation, place: int, stand_ins: set[str]) -> TextTable:
    columns = ["worker", "step", "α time", "β time", "α power", "β power", "steps", "watts", "watts from"]
    shares_batch = found.costs.shares is not None
    if shares_batch:
        columns.insert(1, "batch")
    title = f"workers of {'the best cluster' if place == 1 else f'number {place}'}"
    made = TextTable(title, tuple(columns), ("worker", "watts from"), ("β power", "α power", "β time", "α time"))
    for worker in found.workers(place):
        made.add_row(
            marked([worker.name], stand_ins), *([f"{worker.batch:,}"] if shares_batch else []),
            seconds(worker.cycle_s), f"{worker.alpha_time:.3f}", f"{worker.beta_time:.3f}",
            number(worker.alpha_power), number(worker.beta_power),
            f"{worker.steps:,.0f}", watts(worker.power_w), worker.power_source.text,
        )  # fmt: skip
    return made


def _streams(found: Recommendation, place: int, stand_ins: set[str]) -> list[TextTable]:
    """A table of the streams of the workers' samples; none where all samples are there."""
    streams = found.row(place).streams
    columns = ("worker", "samples/s", "a step", "bound by", "waits", "buffer", "at the end", "bytes")
    made = TextTable("their streams of samples", columns, ("worker", "bound by"), ("a step", "bytes"))
    for name, each in streams.items():
        made.add_row(
            marked([name], stand_ins), number(each.rate), number(each.samples), each.bound_by,
            percent(each.waiting_share), f"+{number(each.growth)}/s" if each.growth else "steady",
            number(each.buffered), bytes_text(each.buffered_bytes),
        )  # fmt: skip
    return [made] if streams else []


def _ties(found: Recommendation) -> bool:
    """Whether anything ties with the best, which always ties with itself."""
    return int(found.ranking.tied.sum()) > 1


def _spread(row: Row) -> float | None:
    """Half the width of the 95 % interval, as a share of its middle on the logarithmic scale; None
    where no spread is known.
    """
    low, high = row.interval
    return (high / low) ** 0.5 - 1 if 0 < low < high else None
