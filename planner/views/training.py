"""This view shows a training run while it goes on."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table as Grid
from rich.text import Text

from backends.jobs.job import ACCURACY
from backends.protocol import events
from backends.protocol.json_messages import encode
from backends.protocol.stream_statistics import InjectionStatistics, StreamStatistics
from backends.strategies.strategy import PARAMETER_SERVER
from planner.agents.call import Event
from planner.console import Detail, device_output, ends, plain
from planner.plan.file import Plan
from planner.profile.power_readings import window_watts
from planner.run.supervisor import MemberLost
from planner.train.events import LogFailed, MemberGivenUp, SlowFetch, Started
from planner.train.train import RunCallbacks
from planner.units import bytes_text, number, percent, seconds, watts
from planner.views.samples import injection_columns, injection_table
from planner.views.stream_table import stream_columns, stream_table
from planner.views.tables import EMULATED_NOTE, TextTable, marked
from profilers.records.readings import Window

#: Share of the steps from which on their mean rate tells the time that is left.
FEW_STEPS = 0.05
#: Events that get a line of their own, besides evaluations.
EVENT_TEXTS = {
    events.Joined: "{} joined",
    events.Dropped: "{} was dropped",
    events.Silent: "{} is silent",
    events.Left: "{} leaves the run",
    MemberLost: "the worker is lost",
    MemberGivenUp: "the worker is not started again",
    events.Refused: "a connection was refused",
    events.CheckpointFailed: "the checkpoint could not be saved",
    LogFailed: "events could not be logged",
    events.Diverged: "the loss of {} diverged",
}
#: Seconds between lines of progress where standard error is no terminal.
EVERY_S = 10.0


@contextmanager
def training(detail: Detail = Detail.NORMAL) -> Iterator[RunCallbacks]:
    """Shows, on standard error, the profiling that may come first and then the run."""
    console = Console(quiet=True) if detail is Detail.QUIET else plain(stderr=True)
    live = Live(console=console, refresh_per_second=4, transient=True, auto_refresh=console.is_terminal)
    with device_output(console) if detail is Detail.VERBOSE else nullcontext(), live:
        shown = TrainingProgress(live, detail is Detail.VERBOSE)
        yield RunCallbacks(shown.on_profile, shown.on_plan, shown.say, shown.on_event)


class TrainingProgress:
    """Prints a line for what happened; on a terminal, shows a progress bar and a table of the
    workers below.

    verbose: print every event as it came.
    """

    def __init__(self, live: Live, verbose: bool = False) -> None:
        self.live = live
        self._verbose = verbose
        self._at = events.Progress(0, 0, 0.0, {})
        self._watts: dict[str, str] = {}
        self._streams: dict[str, StreamStatistics] = {}
        self._injected: dict[str, InjectionStatistics] = {}
        self._stand_ins: set[str] = set()
        self._said = ""
        self._counted_s = time.monotonic()
        self._predicted_s = 0.0

    def on_profile(self, name: str, what: str, share: float | None) -> None:
        """A device, or the links, that were measured; all stages where everything is told."""
        if self._verbose or ends(what, share):
            self.say(f"{name}: {what}")

    def on_plan(self, plan: Plan) -> None:
        """Print what will run."""
        self._stand_ins = set(plan.stand_ins)
        self._predicted_s = plan.prediction.time_s
        server, names = (marked(each, self._stand_ins, ", ") for each in ([plan.server], plan.names))
        where = f"server on {server}, workers {names}" if len(plan.names) > 1 else server
        how = "" if plan.run.strategy.same_as(PARAMETER_SERVER) else f", {plan.run.strategy.text}"
        what = f"{plan.run.model}: {plan.run.steps:,} steps{how}, {where}"
        self.say(f"{what}; predicted {seconds(plan.prediction.time_s)}")
        if len(set(plan.frameworks.values())) > 1:
            self.say("; ".join(f"{name} computes with {framework}" for name, framework in plan.frameworks.items()))
        if self._stand_ins:
            self.say(EMULATED_NOTE)

    def on_event(self, source: str, event: Event) -> None:
        """Show one event of the run."""
        if self._verbose:
            self.say(f"{source}: {json.dumps(encode(event))}")
        if isinstance(event, events.Progress):
            self._at = event
        elif isinstance(event, events.MemberTelemetry):
            self._watts[source] = self._reading(source, event.window)
            if event.stream is not None:
                self._streams[source] = event.stream
            if event.injected is not None:
                self._injected[source] = event.injected
        elif isinstance(event, events.Evaluated):
            self.say(f"step {event.step:,}: loss {event.loss:.4f}{_scores(event.metrics)}")
        elif isinstance(event, Started) and event.until:
            self.say(event.until)
        elif isinstance(event, events.Ready) and event.note:
            self.say(event.note)
        elif isinstance(event, SlowFetch):
            self.say(
                f"a checkpoint took {seconds(event.seconds)} to come from {event.device}: those here are "
                f"{seconds(2 * event.seconds)} apart, which is what a loss of {event.device} may cost"
            )
        elif type(event) in EVENT_TEXTS:
            self.say(f"{source}: {_line(event)}")
        tables = [self._table()]
        if self._streams:
            tables.append(stream_table(stream_columns(self._streams, self._at.elapsed_s)))
        if self._injected:
            tables.append(injection_table(injection_columns(self._injected)))
        self.live.update(Group(self._bar(), *tables))
        self._count()

    def _reading(self, source: str, window: Window) -> str:
        read = window_watts(window)
        if read is None:
            return "-"
        label = " emulated" if source in self._stand_ins else ""
        return f"{watts(read.watts)}{label}"

    def _count(self) -> None:
        now_s = time.monotonic()
        if not self.live.console.is_terminal and self._at.total and now_s - self._counted_s > EVERY_S:
            self._counted_s = now_s
            self.say(self._progress_text())

    def say(self, line: str) -> None:
        """Print a line, unless it is the one printed last."""
        if line != self._said:
            self._said = line
            self.live.console.print(line, soft_wrap=True)

    def _progress_text(self) -> str:
        """Steps, percentage, and the time that is left at the mean rate so far.

        While few steps are made, as before the end of a first round, what was predicted counts.
        """
        at = self._at
        share = at.done / max(at.total, 1)
        left_s = at.elapsed_s * (1 / share - 1) if share else None
        if share < FEW_STEPS and self._predicted_s > at.elapsed_s:
            left_s = self._predicted_s - at.elapsed_s
        return f"{at.done:,} of {at.total:,} steps, {percent(share, 0)}, {seconds(left_s)} left"

    def _bar(self) -> RenderableType:
        bar = ProgressBar(total=max(self._at.total, 1), completed=self._at.done, width=30)
        grid = Grid.grid(padding=(0, 1))
        grid.add_row(bar, Text(self._progress_text()))
        return grid

    def _table(self) -> TextTable:
        at = self._at
        made = TextTable(
            f"after {seconds(at.elapsed_s)}",
            ("worker", "steps", "steps/s", "loss", "staleness", "sent", "watts", "state"),
            left=("worker", "state"),
            optional=("staleness", "sent", "watts"),
        )
        for name, worker in at.workers.items():
            made.add_row(
                name, f"{worker.steps:,}", number(worker.steps / max(at.elapsed_s, 1e-9)),
                number(worker.loss), number(worker.staleness), bytes_text(worker.bytes),
                self._watts.get(name, "-"), "" if worker.connected else "lost",
            )  # fmt: skip
        return made


def _line(event: Event) -> str:
    if isinstance(event, events.Refused) and event.connections > 1:
        return f"{event.connections:,} more connections were refused, the last one: {event.reason}"
    text = EVENT_TEXTS[type(event)].format(getattr(event, "member", ""))
    return f"{text}: {event.reason}" if hasattr(event, "reason") else text


def _scores(metrics: Mapping[str, float]) -> str:
    return "".join(f", {name} {metric_text(name, value)}" for name, value in metrics.items())


def metric_text(name: str, value: float | None) -> str:
    """The accuracy as a percentage, any other metric as a number; "-" where it has no value."""
    return percent(value) if name == ACCURACY else number(value)
