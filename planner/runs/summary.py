"""A run folder is summed up from the files that it has, however its run ended."""

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from backends.protocol.events import Evaluated, Progress, RunAccount
from planner.errors import RecordError
from planner.json_records import decode, load
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.provenance import Provenance
from planner.train import event_log
from planner.train.event_log import LoggedEvent
from planner.train.events import MemberGivenUp, RunEnded, Started, Stopping, TimeOver
from planner.train.orders import Options

FINISHED, RUNNING, INTERRUPTED, DAMAGED = "finished", "running", "interrupted", "damaged"
#: A run logs events every second or so; one whose log has been silent for longer has ended.
SILENT_S = 60.0
#: Folders in folders, below which no run folder is looked for.
MOST_DEEP = 32
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)")


class RunCosts(NamedTuple):
    """Seconds, mean watts, joules and joule-seconds of a whole run; None where unknown."""

    time_s: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    edp_js: float | None = None


class RunTarget(NamedTuple):
    """The value of a metric that ends a run, and the step at which it was reached, if it was."""

    metric: str
    value: float
    reached: bool
    step: int | None


class _Worker(NamedTuple):
    """What is read of a worker in a result."""

    provenance: Provenance


class _Result(NamedTuple):
    """What is read of a result."""

    steps_made: int
    predicted: RunCosts
    measured: RunCosts
    evaluations: tuple[Evaluated, ...]
    workers: dict[str, _Worker]
    ended: str | None = None
    target: RunTarget | None = None


class PlannedRun(NamedTuple):
    """What the plan of a run says of it; None where that is unknown.

    strategy: its text; engine: what moves the gradients.
    """

    model: str | None = None
    server: str | None = None
    workers: tuple[str, ...] = ()
    strategy: str | None = None
    engine: str | None = None
    steps: int | None = None


class RunSummary(NamedTuple):
    """One run; a damaged folder leaves unknown what its files do not tell.

    date: local time at which it began, as 2026-01-31T12:00:00.
    reason: why it is damaged, or ended before its last step; empty otherwise.
    steps_made: by this run, of those that were planned.
    settings: of the plan and the options, by name.
    evaluation: the last one.
    target: of ``--target``, where there was one.
    stand_ins: devices whose times and watts are not those of real ones.
    """

    path: str
    name: str
    date: str
    state: str
    reason: str = ""
    planned: PlannedRun = PlannedRun()
    steps_made: int | None = None
    predicted: RunCosts = RunCosts()
    measured: RunCosts = RunCosts()
    evaluation: Evaluated | None = None
    target: RunTarget | None = None
    stand_ins: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}


def find_runs(root: Path) -> list[RunFolder]:
    """The run folders in a folder, at any depth, and itself if it is one; the oldest first.

    Raises RecordError where it is no folder.
    """
    if not root.is_dir():
        problem = "it is no folder" if root.exists() else "there is no such folder"
        raise RecordError(f"{root}: {problem}; name a run folder, or the folder of runs (--run-dir of `planner train`)")
    found = []
    for path, folders, files in os.walk(root):
        run = RunFolder(Path(path))
        is_deep = len(run.path.relative_to(root).parts) >= MOST_DEEP
        folders[:] = [] if is_deep else [name for name in folders if not name.startswith(".")]
        if {run.events.name, run.result.name, run.options.name} & {*files} or _STAMP.match(run.path.name):
            found.append(run)
            folders.clear()
    return sorted(found, key=lambda run: (_began(run), run.path))


def summary(run: RunFolder, now_s: float) -> RunSummary:
    """What is known of a run; a file that cannot be read makes it damaged and hides no other.

    now_s: seconds since the epoch.
    """
    known = RunSummary(str(run.path), run.path.name, _began(run), DAMAGED)
    faults = []
    for part in (_with_plan, _with_options, _with_course):
        try:
            known = part(known, run, now_s)
        except RecordError as error:
            faults.append(str(error).partition(";")[0])
        except OSError as error:
            faults.append(f"cannot read {error.filename}: {error.strerror}")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            faults.append(f"{run.path}: {type(error).__name__} {error}")
    if faults:
        return known._replace(state=RUNNING if known.state == RUNNING else DAMAGED, reason="; ".join(faults))
    return known


def _began(run: RunFolder) -> str:
    stamp = _STAMP.match(run.path.name)
    if stamp:
        return f"{stamp[1]}T{stamp[2]}:{stamp[3]}:{stamp[4]}"
    first = min((each.stat().st_mtime for each in (run.plan, run.options, run.path) if each.exists()), default=0.0)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(first))


def _with_plan(known: RunSummary, run: RunFolder, now_s: float) -> RunSummary:
    plan = load(Plan, run.plan)
    settings = plan.run
    predicted = plan.prediction
    return known._replace(
        planned=PlannedRun(
            settings.model, plan.server, plan.names, settings.strategy.as_text(), settings.engine.text, settings.steps
        ),
        predicted=RunCosts(predicted.time_s, predicted.power_w, predicted.energy_j, predicted.edp_js),
        stand_ins=plan.stand_ins,
        settings={
            "model": settings.model, "framework": plan.framework, "server": plan.server,
            "workers": " ".join(plan.names), "strategy": settings.strategy.text,
            "optimizer": settings.strategy.optimizer.as_text(), "engine": settings.engine.text,
            "steps": settings.steps, "batch": settings.batch, "fleet": plan.fleet,
        },
    )  # fmt: skip


def _with_options(known: RunSummary, run: RunFolder, now_s: float) -> RunSummary:
    return known._replace(settings={**known.settings, **load(Options, run.options)._asdict()})


def _with_course(known: RunSummary, run: RunFolder, now_s: float) -> RunSummary:
    """With what the run achieved: from its result or, where it has none, from its events."""
    if run.result.exists():
        return _with_result(known, run)
    events, cut_off = _events(run.events)
    known = known._replace(**_standing([each.event for each in events]))
    is_young = now_s - run.events.stat().st_mtime < SILENT_S
    if (event_log.is_written(run.events) or is_young) and not any(isinstance(each.event, RunEnded) for each in events):
        return known._replace(state=RUNNING, reason="")
    if cut_off:
        return known._replace(reason=cut_off)
    return known._replace(state=INTERRUPTED)


def _with_result(known: RunSummary, run: RunFolder) -> RunSummary:
    saved = load(dict[str, Any], run.result)
    parts = {
        **_read_of(_Result, saved),
        "predicted": _read_of(RunCosts, saved["predicted"]),
        "measured": _read_of(RunCosts, saved["measured"]),
        "workers": {name: _read_of(_Worker, worker) for name, worker in saved["workers"].items()},
    }
    try:
        result = decode(_Result, parts)
    except RecordError as error:
        raise RecordError(f"{run.result}: {error}") from None
    return known._replace(
        state=FINISHED,
        reason=result.ended or "",
        steps_made=result.steps_made,
        predicted=result.predicted,
        measured=result.measured,
        evaluation=result.evaluations[-1] if result.evaluations else None,
        target=result.target,
        stand_ins=tuple(name for name, worker in result.workers.items() if worker.provenance.emulated),
    )


def _read_of(kind: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those fields that are read; others are for people."""
    return {name: fields[name] for name in kind._fields if name in fields}


def _events(path: Path) -> tuple[list[LoggedEvent], str]:
    """The events of a log, and what ends it before its last line.

    A last line that is cut off is that of a program that was killed, and no damage.
    """
    found: list[LoggedEvent] = []
    lines: Iterator[LoggedEvent] = event_log.read(path)
    try:
        found.extend(lines)
    except ValueError as error:
        with path.open("rb") as stream:
            whole = stream.read().endswith(b"\n")
        return found, f"{path}, {error}" if whole else ""
    return found, ""


def _standing(events: Sequence[Any]) -> dict[str, Any]:
    """Steps made, the last evaluation and why the run ended, of a run without a result."""
    at: Progress | RunAccount | None = None
    last, why = None, "it ended before its first step"
    for event in events:
        if isinstance(event, Evaluated):
            last = event
        elif isinstance(event, Progress):
            at = event
        elif isinstance(event, RunEnded):
            at = event.account
            last = (at.evaluations or (last,))[-1]
            why = at.reason or why
        elif isinstance(event, Started):
            why = "its log ends in the middle of the run"
        elif isinstance(event, Stopping | TimeOver):
            why = "it was stopped"
        elif isinstance(event, MemberGivenUp):
            why = event.reason
    return {"steps_made": at.done if at else 0, "evaluation": last, "reason": why}
