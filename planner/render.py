"""What is shown: tables on standard output, progress on standard error."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from planner.plan import Recommendation
from planner.planfile import Plan
from planner.profilefile import Profile
from planner.run import View
from planner.runs import RunFolder
from planner.units import bytes_text, joules, number, seconds, watts
from profilers import stats

OnProgress = Callable[[str, str, float | None], None]


def show(what: RenderableType | dict[str, Any]) -> None:
    """A table, or JSON, on standard output; never cut where standard output is a file."""
    if isinstance(what, dict):
        print(json.dumps(what, indent=1))
        return
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    console.print(what)


@contextmanager
def progress() -> Iterator[OnProgress]:
    """One line a device, with what it does now."""
    console = Console(stderr=True)
    bars = Progress(
        TextColumn("{task.fields[name]:12}"), BarColumn(20), TextColumn("{task.description}"), TimeElapsedColumn(),
        console=console, disable=not console.is_terminal,
    )  # fmt: skip
    lines: dict[str, TaskID] = {}
    said: dict[str, str] = {}

    def on_progress(name: str, what: str, share: float | None) -> None:
        if name not in lines:
            lines[name] = bars.add_task(what, total=None, name=name)
        bars.update(lines[name], description=what, total=None if share is None else 1.0, completed=share or 0.0)
        stage = what.partition(" step ")[0]
        if not console.is_terminal and said.get(name) != stage:
            said[name] = stage
            console.print(f"{name}: {stage}", highlight=False, soft_wrap=True)

    with bars:
        yield on_progress


@contextmanager
def status(title: str) -> Iterator[OnProgress]:
    """A spinner while many small things are done."""
    console = Console(stderr=True)
    with console.status(title) as spinner:
        yield lambda name, what, share: spinner.update(f"{title}: {name} {what}")


# -- profile ---------------------------------------------------------------------------------------------


def profile_table(profile: Profile, path: Path) -> RenderableType:
    """Step times by device and model, then rates between devices."""
    steps = Table(title="steps", title_justify="left")
    for column in ("device", "model", "batch", "step", "± 95 %", "build", "server update", "model bytes", "steady"):
        steps.add_column(column, justify="left" if column in ("device", "model") else "right")
    for name, device in profile.devices.items():
        if device.error is not None:
            steps.add_row(name, Text(device.error, style="red"))
        for timed in device.steps:
            totals = [sum(pair) for pair in zip(timed.gradient_s.values, timed.update_s.values, strict=True)]
            label = f"{name} (emulated, {timed.slowdown:g}x slower)" if timed.slowdown > 1 else name
            steps.add_row(
                label, timed.model, str(timed.batch), seconds(stats.mean(totals)),
                f"{100 * stats.relative_interval95(totals):.1f} %", seconds(timed.build_s),
                seconds(stats.mean(timed.service_s.values)), bytes_text(timed.parameter_bytes),
                "yes" if timed.steady else "no",
            )  # fmt: skip
    links = Table(title="links", title_justify="left")
    for column in ("from", "to", "tool", "rate", "one way"):
        links.add_column(column)
    for link in profile.links:
        rate = bytes_text(stats.median(link.bytes_per_s.values)) + "/s" if link.bytes_per_s.values else "-"
        links.add_row(link.source, link.target, link.tool, rate, seconds(stats.median(link.latency_s.values)))
    took = f"profiling took {seconds(profile.profiling_s())}; wrote {path}"
    return Group(steps, links, Text(took))


def profile_json(profile: Profile, path: Path) -> dict[str, Any]:
    """What was measured, in short; the raw samples are in the file."""
    return {
        "profile": str(path),
        "took_s": profile.profiling_s(),
        "devices": {
            name: {
                "error": device.error,
                "models": {
                    timed.model: {
                        "batch": timed.batch,
                        "gradient_s": stats.mean(timed.gradient_s.values),
                        "update_s": stats.mean(timed.update_s.values),
                        "build_s": timed.build_s,
                        "steady": timed.steady,
                        "precise": timed.precise,
                    }
                    for timed in device.steps
                },
            }
            for name, device in profile.devices.items()
        },
        "links": [
            {"source": link.source, "target": link.target, "tool": link.tool, "latency_s": stats.median(link.latency_s.values)}
            | ({"bytes_per_s": stats.median(link.bytes_per_s.values)} if link.bytes_per_s.values else {})
            for link in profile.links
        ],
    }


# -- recommend -------------------------------------------------------------------------------------------


def ranking(found: Recommendation, top: int, path: Path) -> RenderableType:
    """The best clusters, the breakdown of the first, and what is to be known about them."""
    rows = min(len(found), top or len(found))
    title = f"{found.costs.model}, batch {found.costs.batch}, {found.steps:,} steps: best {rows} of {len(found)} by {found.metric}"
    table = Table(title=title, title_justify="left")
    for column in ("", "server", "workers", "time", "power", "energy", "EDP", "95 %", "sent", "bottleneck"):
        table.add_column(column, justify="left" if column in ("server", "workers", "bottleneck") else "right")
    for place in range(1, rows + 1):
        row = found.row(place)
        predicted = row.prediction
        spread = (row.interval[1] / row.interval[0] - 1) / 2 if row.interval[0] > 0 else 0.0
        table.add_row(
            f"{place}{'=' if row.tie else ''}", row.config.server, " ".join(row.config.workers),
            seconds(predicted.time_s), watts(predicted.power_w), joules(predicted.energy_j),
            number(predicted.edp_js, "Js"), f"± {100 * spread:.1f} %", bytes_text(row.network_bytes),
            f"{row.bottleneck} {100 * row.shares[row.bottleneck]:.0f} %",
        )  # fmt: skip
    notes = [f"left out: {name}: {reason}" for name, reason in found.left_out.items()] + list(found.notes)
    if rows > 1 and found.row(2).tie:
        notes.append("= ties with the best: the measurements cannot tell them apart; profile again for more samples")
    notes.append(f"profiling took {100 * found.overhead:.2f} % of the best's time; wrote {path}")
    return Group(table, _breakdown(found), *(Text(note) for note in notes))


def _breakdown(found: Recommendation) -> Table:
    table = Table(title="the best, worker by worker", title_justify="left")
    for column in ("worker", "step in cluster", "α time", "β time", "α power", "β power", "watts", "watts from", "steps"):
        table.add_column(column, justify="left" if column in ("worker", "watts from") else "right")
    for worker in found.workers(1):
        table.add_row(
            worker.name, seconds(worker.cycle_s), f"{worker.alpha_time:.3f}", f"{worker.beta_time:.3f}",
            number(worker.alpha_power), number(worker.beta_power), watts(worker.power_w), worker.power_source,
            f"{worker.steps:,.0f}",
        )  # fmt: skip
    return table


# -- train -----------------------------------------------------------------------------------------------


class TrainingView:
    """A table that lives while a run does; plain lines where standard error is no terminal."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console = console
        self._live = live
        self._progress: dict[str, Any] = {"done": 0, "total": 0, "elapsed_s": 0.0, "workers": {}}
        self._watts: dict[str, str] = {}
        self._said = ""
        self._shown_s = 0.0

    def on_plan(self, plan: Plan) -> None:
        """Say what will run."""
        where = f"server on {plan.server}, workers {', '.join(plan.names)}" if len(plan.names) > 1 else f"{plan.server} alone"
        self._say(f"{plan.model}: {plan.steps:,} steps, {where}; predicted {seconds(plan.prediction.time_s)}")

    def on_event(self, source: str, event: dict[str, Any]) -> None:
        """Show one event of the run."""
        if "progress" in event:
            self._progress = event["progress"]
        elif "window" in event:
            read = [power["watts"] for power in event["window"]["power"] if power["watts"] is not None]
            self._watts[source] = watts(sum(read)) if read else "-"
        elif "evaluated" in event:
            scores = event["evaluated"]
            self._say(f"step {scores['step']:,}: loss {scores['loss']:.4f}, accuracy {100 * scores['accuracy']:.2f} %")
        else:
            for word in ("joined", "dropped", "silent", "lost", "refused", "checkpoint_failed", "diverged"):
                if word in event:
                    reason = f": {event['reason']}" if "reason" in event else ""
                    self._say(f"{source}: {word.replace('_', ' ')} {event[word]}{reason}")
        self._live.update(self._table())
        if not self._console.is_terminal and time.monotonic() - self._shown_s > 10.0 and self._progress["total"]:
            self._shown_s = time.monotonic()
            self._say(f"{self._progress['done']:,} of {self._progress['total']:,} steps")

    def _say(self, line: str) -> None:
        if line != self._said:
            self._said = line
            self._live.console.print(line, highlight=False, soft_wrap=True)

    def _table(self) -> Table:
        at = self._progress
        table = Table(title=f"{at['done']:,} of {at['total']:,} steps, {seconds(at['elapsed_s'])}", title_justify="left")
        for column in ("worker", "steps", "steps/s", "loss", "staleness", "sent", "watts", ""):
            table.add_column(column, justify="left" if column == "worker" else "right")
        for name, worker in at["workers"].items():
            table.add_row(
                name, f"{worker['steps']:,}", number(worker["steps"] / max(at["elapsed_s"], 1e-9)),
                number(worker["loss"]), number(worker["staleness"]), bytes_text(worker["bytes"]),
                self._watts.get(name, "-"), "" if worker["connected"] else "gone",
            )  # fmt: skip
        return table


@contextmanager
def training() -> Iterator[View]:
    """Progress of profiling where that comes first, then of the run."""
    console = Console(stderr=True)
    with Live(console=console, refresh_per_second=4, transient=True, auto_refresh=console.is_terminal) as live:
        view = TrainingView(console, live)
        yield View(lambda name, what, share: view._say(f"{name}: {what.partition(' step ')[0]}"), view.on_plan, view.on_event)


def result_table(result: dict[str, Any], folder: RunFolder) -> RenderableType:
    """Measured beside predicted, each worker's part, and the accuracy on the way."""
    table = Table(title=f"{result['model']}, {result['steps']:,} steps", title_justify="left")
    for column in ("", "time", "power", "energy", "EDP"):
        table.add_column(column, justify="right" if column else "left")
    for kind in ("predicted", "measured"):
        values = result[kind]
        table.add_row(
            kind, seconds(values["time_s"]), watts(values["power_w"]), joules(values["energy_j"]), number(values["edp_js"], "Js")
        )
    errors = [result["error"][key] for key in ("time_s", "power_w", "energy_j", "edp_js")]
    table.add_row("error", *("-" if error is None else f"{100 * error:+.1f} %" for error in errors))
    parts = Table(title="workers", title_justify="left")
    for column in ("worker", "steps", "predicted steps", "computing", "exchanging", "watts", "watts from"):
        parts.add_column(column, justify="left" if column in ("worker", "watts from") else "right")
    for name, part in result["workers"].items():
        parts.add_row(
            name, f"{part['steps']:,}", f"{part['predicted_steps']:,.0f}", seconds(part["busy_s"]),
            seconds(part["exchange_s"]), watts(part["watts"]), part["source"],
        )  # fmt: skip
    course = ", ".join(f"{100 * e['accuracy']:.1f} % at {e['step']:,}" for e in result["evaluations"])
    return Group(table, parts, Text(f"accuracy: {course}"), Text(f"run folder: {folder.path}"))
