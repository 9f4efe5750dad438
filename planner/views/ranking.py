"""This view shows a recommendation: what to train on, the best clusters, and notes on them."""

from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from backends.strategies.engine import OWN
from backends.strategies.strategy import PARAMETER_SERVER
from planner.paths import PLAN
from planner.plan.recommendation import Recommendation, Row
from planner.plan.texts import AUTO
from planner.predict.inputs import Inputs
from planner.provenance import NAMEPLATE
from planner.units import bytes_text, joules, number, percent, seconds, watts
from planner.views import planned_cluster
from planner.views.advice import Offer, advice, named
from planner.views.notes import few, legend
from planner.views.tables import EMULATED_NOTE, TextTable, marked, stack

TIE_LEGEND = "= not told apart from the best"
NAMEPLATE_NOTE = "± energy leaves out the error of watts from the fleet file, which is not known"
#: The next best cluster of other devices is looked for among so many rows.
FOLLOWING = 20


def render(found: Recommendation, top: int, path: Path | None, place: int = 1, verbose: bool = False) -> RenderableType:
    """What to do, the ``top`` clusters (0: all), and the notes that matter most.

    path: where the plan is, None where it was not written; place: which of the ranking it is.
    verbose: all columns, the planned cluster worker by worker, and every note.
    """
    rows, stand_ins = found.rows(top or len(found)), found.stand_ins
    tables = [_clusters(found, rows, stand_ins, verbose)]
    if verbose:
        tables += planned_cluster.tables(found, place, stand_ins)
    signs = legend(
        TIE_LEGEND if _ties(found) else None,
        EMULATED_NOTE if stand_ins else None,
        None if _spread(rows[0]) is None else f"± half of the 95 % interval of {_score(found)}",
    )
    notes = [
        *signs,
        *few(remarks(found), details(found), verbose),
        _written(found, path, place),
    ]
    return stack([Text(_advice(found, place, stand_ins), style="bold"), *tables], notes)


def remarks(found: Recommendation) -> list[str]:
    """What matters of a ranking in whatever form it is printed, the most important first."""
    left_out = [f"left out: {name}: {reason}" for name, reason in found.training.left_out.items()]
    return [*left_out, *found.notes]


def details(found: Recommendation) -> list[str]:
    """How the figures came about."""
    nameplate = any(source.kind == NAMEPLATE for part in found.parts for source in part.inputs.watts.sources)
    best_s = seconds(found.prediction(1).time_s)
    return [
        *_frameworks(found),
        *found.details,
        *[NAMEPLATE_NOTE] * nameplate,
        f"profiling took {seconds(found.profiling_s)}; the best cluster would train for {best_s}",
    ]


def unwritten(found: Recommendation) -> str:
    """Why a recommendation wrote no plan, and how to have it written."""
    return (
        f"{PLAN} was not changed, because {' and '.join(found.training.what_if)} is a what-if; -o FILE writes its plan"
    )


def _written(found: Recommendation, path: Path | None, place: int) -> str:
    if path is None:
        return unwritten(found)
    return f"wrote {path}" if place == 1 else f"wrote number {place} to {path}"


def _advice(found: Recommendation, place: int, stand_ins: set[str]) -> str:
    chosen = found.config(place).workers
    places = range(place + 1, min(len(found), place + FOLLOWING) + 1)
    following = next((other for other in places if found.config(other).workers != chosen), None)
    return advice(
        _choice(found, place, stand_ins),
        _choice(found, found.place_of_least("time"), stand_ins),
        _choice(found, found.place_of_least("energy"), stand_ins),
        None if following is None else _choice(found, following, stand_ins),
        by_power=found.metric == "power",
    )


def _choice(found: Recommendation, place: int, stand_ins: set[str]) -> Offer:
    names = [marked([name], stand_ins) for name in found.config(place).workers]
    predicted = found.prediction(place)
    return Offer(named(names), predicted.time_s, predicted.energy_j)


def _frameworks(found: Recommendation) -> list[str]:
    """The framework of each device, where they differ."""
    users = {
        framework: [name for name, used in found.frameworks.items() if used == framework]
        for framework in dict.fromkeys(found.frameworks.values())
    }
    text = "; ".join(f"{framework} on {', '.join(names)}" for framework, names in users.items())
    return [f"frameworks, the fastest on each device: {text}"] if len(users) > 1 else []


def _batch(inputs: Inputs) -> str:
    shares = inputs.batches.shares
    return f"batch {inputs.batches.usual}" if shares is None else f"global batch {shares.size}"


def _score(found: Recommendation) -> str:
    return "EDP" if found.metric == "edp" else found.metric


def _title(found: Recommendation, rows: list[Row]) -> str:
    how = "" if found.inputs.strategy.same_as(PARAMETER_SERVER) else f", {found.inputs.strategy.text}"
    how = how if found.inputs.torch is None else ""
    how += "" if found.engine == OWN else f", --engine {found.engine}"
    best = f"best {len(rows)} of {len(found)} by {_score(found)}"
    return f"{found.settings.model}{how}, {_batch(found.inputs)}, {found.settings.steps:,} steps: {best}"


def _clusters(found: Recommendation, rows: list[Row], stand_ins: set[str], verbose: bool) -> TextTable:
    engine = ("engine",) if found.engine == AUTO else ()
    figures = ["time", "power", "energy", "EDP", "±"]
    figures += ["± energy", "traffic", "bottleneck"] if verbose else []
    made = TextTable(
        _title(found, rows),
        ("", *engine, "server", "workers", *figures),
        left=(*engine, "server", "workers", *[each for each in figures if each == "bottleneck"]),
        optional=[each for each in ("traffic", "± energy", "bottleneck", "power", "±") if each in figures],
    )
    ties = _ties(found)
    for place, row in enumerate(rows, 1):
        cells = _figures(row)
        made.add_row(
            f"{place}{'=' if ties and row.standing.tie else ''}",
            *[row.engine for _ in engine],
            marked([row.config.server], stand_ins),
            marked(row.config.workers, stand_ins),
            *(cells[each] for each in figures),
        )
    return made


def _figures(row: Row) -> dict[str, str]:
    predicted = row.prediction
    return {
        "time": seconds(predicted.time_s),
        "power": watts(predicted.power_w),
        "energy": joules(predicted.energy_j),
        "EDP": number(predicted.edp_js, "Js"),
        "±": percent(_spread(row)),
        "± energy": percent(row.standing.energy_uncertainty),
        "traffic": bytes_text(row.network_bytes),
        "bottleneck": f"{row.bottleneck} {percent(row.shares[row.bottleneck], 0)}",
    }


def _ties(found: Recommendation) -> bool:
    """Whether anything of what follows ties with the best."""
    return any(row.standing.tie for row in found.rows(FOLLOWING)[1:])


def _spread(row: Row) -> float | None:
    """Half the width of the 95 % interval, as a share of its middle on the logarithmic scale; None
    where no spread is known.
    """
    low, high = row.standing.interval
    return (high / low) ** 0.5 - 1 if 0 < low < high else None
