"""This view shows what a run has trained, and what was measured beside what was predicted."""

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from planner.errors import RunError
from planner.export.formats import suggested
from planner.json_records import decode
from planner.paths import RunFolder
from planner.profile.power_readings import uncertainty
from planner.provenance import Provenance
from planner.units import joules, number, percent, seconds, watts
from planner.views.advice import named
from planner.views.notes import few, legend
from planner.views.samples import injection_table, partition_table
from planner.views.stream_table import stream_table
from planner.views.tables import EMULATED_NOTE, TextTable, marked, stack
from planner.views.training import metric_text

#: Figures that are predicted and measured, in the order of the table.
FIGURES = ("time_s", "power_w", "energy_j", "edp_js")
#: A time within this share of the prediction is as predicted.
AS_PREDICTED = 0.005
#: Most values of a metric that are shown of a run.
MOST_POINTS = 6


def render(result: Mapping[str, Any], folder: RunFolder, verbose: bool = False) -> RenderableType:
    """What was trained, measured beside predicted, and the notes that matter most.

    result: the content of result.json; verbose: also each worker's part, its labels and samples,
    the metrics on the way, and every note.
    """
    stand_ins = {name for name, part in result["workers"].items() if _source(part).emulated}
    tables = [_totals(result)]
    if verbose:
        tables += [_workers(result, stand_ins), *_samples(result)]
    notes = [
        *legend(EMULATED_NOTE if stand_ins else None),
        *_last_metrics(result["evaluations"]),
        *few(result["notes"], [*_wall(result), *_courses(result["evaluations"])], verbose),
        f"to use it: planner export {shlex.quote(str(folder.path))} --to {_file(result)}",
    ]
    return stack([Text(summary(result, folder, stand_ins), style="bold"), *tables], notes)


@contextmanager
def complete(folder: RunFolder, problems: Sequence[str]) -> Iterator[None]:
    """Show the result of a run within it. Raises RunError for what is missing of the result.

    problems: those of the result.
    """
    found = list(problems)
    try:
        yield
    except OSError:  # of standard output
        raise
    except Exception as error:  # noqa: BLE001 - nobody should think that the run is lost
        found.append(f"its result cannot be shown: {type(error).__name__}: {error}")
    if found:
        raise RunError(f"the run is complete, in {folder.path}, but {'; '.join(found)}")


def summary(result: Mapping[str, Any], folder: RunFolder, stand_ins: Collection[str] = ()) -> str:
    """What was trained where, what it took, and where the weights are.

    ``Trained 1,000 steps on tx2 + tx1 in 74 s with 1.6 kJ, 7 % faster than predicted; weights in
    runs/x.``
    """
    measured, made = result["measured"], result.get("steps_made", result["steps"])
    who = named([marked([name], stand_ins) for name in result["workers"]]).removesuffix(" alone")
    energy = "" if measured["energy_j"] is None else f" with {joules(measured['energy_j'])}"
    trained = f"Trained {made:,} steps on {who} in {seconds(measured['time_s'])}{energy}{_deviation(result)}"
    return f"{trained}; weights in {folder.path}.{_end(result)}"


def _deviation(result: Mapping[str, Any]) -> str:
    error = result["error"]["time_s"]
    if error is None:
        return ""
    share = 1 / (1 + error) - 1  # of the predicted time
    if abs(share) < AS_PREDICTED:
        return ", as predicted"
    return f", {percent(abs(share), 0)} {'slower' if share > 0 else 'faster'} than predicted"


def _end(result: Mapping[str, Any]) -> str:
    """Whether the target was reached, and why the run ended before its last step."""
    target, early = result.get("target"), f" The run ended early: {result['ended']}." if result.get("ended") else ""
    if not target:
        return early
    wanted = f"{target['metric']}={target['value']:g}"
    if target["reached"]:
        return f" It reached {wanted} after {target['step']:,} steps."
    return f" It did not reach {wanted}.{early}"


def _file(result: Mapping[str, Any]) -> str:
    """A file to export the model to, in the format that it surely has."""
    frameworks = {part["framework"] for part in result["workers"].values()}
    return suggested(result["model"], frameworks.pop())


def _wall(result: Mapping[str, Any]) -> list[str]:
    """The wall time with its evaluations, predicted and measured, where there were any."""
    predicted_s, measured_s = (result[kind].get("wall_s") for kind in ("predicted", "measured"))
    if predicted_s is None or not result["measured"]["evaluation_s"]:
        return []
    error = _signed(predicted_s / measured_s - 1.0)
    return [f"with evaluations: {seconds(predicted_s)} predicted, {seconds(measured_s)} measured, error {error}"]


def _metrics(evaluation: Mapping[str, Any]) -> dict[str, float]:
    """Its metrics; its loss where it has none."""
    return evaluation["metrics"] or {"loss": evaluation["loss"]}


def _last_metrics(evaluations: Sequence[Mapping[str, Any]]) -> list[str]:
    """The metrics of the last evaluation."""
    if not evaluations:
        return []
    last = evaluations[-1]
    texts = ", ".join(f"{name} {metric_text(name, value)}" for name, value in _metrics(last).items())
    return [f"after {last['step']:,} steps: {texts}"]


def _courses(evaluations: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line a metric with its values on the way; of the loss where there is no metric."""
    if not evaluations:
        return []
    last, count = len(evaluations) - 1, min(len(evaluations), MOST_POINTS)
    shown = [evaluations[round(place * last / max(1, count - 1))] for place in range(count)]
    points = {
        name: (f"{metric_text(name, _metrics(each).get(name))} after {each['step']:,}" for each in shown)
        for name in _metrics(evaluations[0])
    }
    return [f"{name}: {', '.join(texts)} steps" for name, texts in points.items()]


def _totals(result: Mapping[str, Any]) -> TextTable:
    columns = ("", "time", "power", "energy", "± energy", "EDP")
    made = TextTable(f"{result['model']}, {result['steps']:,} steps", columns, ("",), ("± energy",))
    for kind in ("predicted", "measured"):
        at = result[kind]
        made.add_row(
            kind + " (emulated)" * _source(at).emulated, seconds(at["time_s"]), watts(at["power_w"]),
            joules(at["energy_j"]), percent(at["energy_uncertainty"]), number(at["edp_js"], "Js"),
        )  # fmt: skip
    time, power, energy, edp = (result["error"][key] for key in FIGURES)
    made.add_row("error of prediction", _signed(time), _signed(power), _signed(energy), "", _signed(edp))
    return made


def _signed(error: float | None) -> str:
    return "-" if error is None else f"{100 * error:+.1f} %"


def _workers(result: Mapping[str, Any], stand_ins: Collection[str]) -> TextTable:
    columns = ("worker", "steps", "predicted", "computing", "exchanging", "watts", "± watts", "watts from")
    made = TextTable("workers", columns, left=("worker", "watts from"), optional=("± watts", "exchanging", "computing"))
    for name, part in result["workers"].items():
        made.add_row(
            marked([name], stand_ins), f"{part['steps']:,}", f"{part['predicted_steps']:,.0f}", seconds(part["busy_s"]),
            seconds(part["exchange_s"]), watts(part["watts"]), percent(uncertainty(part["watts_error"])),
            _source(part).text,
        )  # fmt: skip
    return made


def _samples(result: Mapping[str, Any]) -> list[TextTable]:
    """Tables of what the workers trained on: their labels, streams, and samples of others."""
    streams, injected = (
        {name: part[key] for name, part in result["workers"].items() if part.get(key)} for key in ("stream", "injected")
    )
    return [
        *([partition_table(result["partition"])] if "partition" in result else []),
        *([stream_table(streams)] if streams else []),
        *([injection_table(injected)] if injected else []),
    ]


def _source(of: Mapping[str, Any]) -> Provenance:
    return decode(Provenance, of["provenance"])
