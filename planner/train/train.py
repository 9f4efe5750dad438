"""Training reads or makes a plan, checks that data and checkpoint fit it, and carries it out."""

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from backends.jobs.job import ACCURACY
from backends.jobs.metric_names import HIGHER
from backends.protocol.events import RunAccount
from backends.strategies.engine import TORCH
from planner.console import OnProgress
from planner.errors import PlanError, RecordError, RunError
from planner.fleet.device import Fleet, require_trust
from planner.fleet.file import load_fleet
from planner.jobs.reference import find_job
from planner.json_records import load, save
from planner.paths import FLEET, PLAN, RunFolder
from planner.plan.file import Plan, load_plan
from planner.predict.batches import notes_scaled
from planner.train import orders
from planner.train.data_division import data_division
from planner.train.event_log import OnEvent
from planner.train.injection import OFF, check_injection, injection_notes, predicted_injection
from planner.train.orders import Options
from planner.train.plan_first import PlanFirst, plan_first
from planner.train.plan_fit import check_fit
from planner.train.result import end_of, finite, learning_notes, run_result
from planner.train.resume import RUN_REMEDY, require_checkpoint, require_resumable
from planner.train.start import TrainingRun
from planner.train.stream_results import stream_notes
from planner.train.trackers.request import TrackerRequest
from planner.train.training_data import JobData, ShippedImages, TrainingData, load_dataset
from planner.train.worker_result import worker_results
from profilers.mixed_precision import FP16
from profilers.records.json_values import json_value


class TrainRequest(NamedTuple):
    """The operator's request; None leaves a field to the plan or to the run that is resumed.

    job: how the user named a job of their own.
    first: what to plan before that; None to train a plan that is there.
    steps: in all; the plan's prediction is scaled to them.
    options: the fields of ``Options`` that were given.
    allow_plaintext: gradients may cross a network unencrypted.
    trackers: what else is written while it trains.
    """

    fleet: Path | None
    plan: Path | None
    steps: int | None
    job: str | None
    options: dict[str, Any]
    resume: Path | None
    runs: Path
    allow_plaintext: bool = False
    trackers: TrackerRequest = TrackerRequest()
    first: PlanFirst | None = None


class RunCallbacks(NamedTuple):
    """Called as profiling and training go on, with the plan, and with remarks on it."""

    on_profile: OnProgress
    on_plan: Callable[[Plan], None]
    on_note: Callable[[str], None]
    on_event: OnEvent


def train(request: TrainRequest, callbacks: RunCallbacks) -> tuple[dict[str, Any], RunFolder]:
    """Train; returns the content of result.json and the run's folder. Raises PlannerError."""
    request.trackers.check()
    if request.first is not None:
        request.first.check()
    fleet = load_fleet(request.fleet) if request.fleet else None
    before = RunFolder(request.resume) if request.resume else None
    if before is not None:
        require_checkpoint(before)
    options = _options(request, before)
    orders.check(options)
    data = _data(request, options, before)
    if data.job is None:
        orders.settled_rule(options, {ACCURACY: HIGHER})
    if request.first is not None:
        fleet = fleet or load_fleet(Path(FLEET))
        plan = plan_first(request.first, data, fleet, callbacks.on_profile, callbacks.on_note)
    else:
        plan = _plan(request, before, callbacks.on_note)
    orders.check_momentum(options, plan.run.strategy)
    check_injection(options, plan)
    for note in (*stream_notes(options, plan), *injection_notes(options, plan, data.sample_bytes)):
        callbacks.on_note(note)
    if note := check_fit(plan, data):
        callbacks.on_note(note)
    require_resumable(plan, before)
    fleet = fleet or load_fleet(Path(plan.fleet))
    engine_note = _check_engine(plan, fleet, request.allow_plaintext)
    callbacks.on_plan(plan)
    if engine_note:
        callbacks.on_note(engine_note)
    division = data_division(plan, options, before)
    folder = RunFolder.create(request.runs, plan.run.model)
    observers = request.trackers.open(plan, folder)
    run = TrainingRun(plan, fleet, data, options, folder, callbacks.on_event, observers=observers, division=division)
    return carry_out(run, before.checkpoint if before else None), folder


def carry_out(run: TrainingRun, resume: Path | None = None, lasting_s: float = math.inf) -> dict[str, Any]:
    """Run a plan to its end, or for ``lasting_s``; returns the content of result.json.

    The run's folder then holds plan, options, events, checkpoint and result. Whatever of them could
    not be written or worked out is among the result's ``problems``. Raises RunError, also where the
    run is complete but its figures cannot be worked out; result.json then has its account. Raises
    PlanError for a target that cannot be judged; there is no folder then.
    """
    plan, folder = run.plan, run.folder
    save(plan, folder.plan)
    save(run.options, folder.options)
    try:
        account = run.run(resume, lasting_s)
    except PlanError:  # what cannot be trained, as a target of no metric, leaves no run behind
        shutil.rmtree(folder.path, ignore_errors=True)
        raise
    try:
        result = run_result(plan, account, worker_results(plan, account, run.reports))
    except Exception as error:  # no figure that fails costs the run
        problem = f"its figures could not be worked out: {type(error).__name__}: {error}"
        _keep({"account": json_value(account), "problems": [*run.problems, problem]}, folder)
        raise RunError(f"the run is complete, but {problem}; {folder.result} has its account") from error
    result["problems"] = list(run.problems)
    _keep(result, folder)  # before what may fail
    try:
        _add_reports(result, run, account)
    except Exception as error:  # noqa: BLE001 - no report that fails costs the run
        result["problems"].append(f"its report is not complete: {type(error).__name__}: {error}")
    _keep(result, folder)
    return result


def _keep(result: dict[str, Any], folder: RunFolder) -> None:
    result.update(finite(result))
    try:
        save(result, folder.result)
    except (RecordError, ValueError, TypeError) as error:
        if str(error) not in result["problems"]:
            result["problems"].append(str(error))


def _add_reports(result: dict[str, Any], run: TrainingRun, account: RunAccount) -> None:
    """Add how the run ended, and what is known of its start, its data and what it learnt."""
    plan = run.plan
    rule = orders.stop_rule(run.options)
    result.update(end_of(account, rule))
    if rule.target is not None and account.evaluations and not any(map(rule.target.is_in, account.evaluations)):
        result["notes"].append(f"--target {run.options.target}: in no evaluation was {rule.target.metric} a number")
    if run.startup_s is not None:
        result["startup_s"] = run.startup_s
    if run.division.by_label:
        result["partition"] = json_value(run.division)
        result["notes"] += run.division.notes(run.data.samples or plan.samples)
    if run.options.inject is not None:
        steps = {name: float(part["steps"]) for name, part in result["workers"].items()}
        expected = predicted_injection(run.options, plan, steps, run.data.sample_bytes)
        result["injection"] = {"inject": run.options.inject, "predicted": json_value(expected)}
    if run.data.classes is not None:
        result["notes"] += learning_notes(account.evaluations, run.data.classes)


def _options(request: TrainRequest, before: RunFolder | None) -> Options:
    """The options of the request, and otherwise those of the run that is resumed."""
    saved = Options() if before is None else load(Options, before.options, RUN_REMEDY)
    options = saved._replace(**request.options)
    return options._replace(inject=None) if options.inject == OFF else options


def _data(request: TrainRequest, options: Options, before: RunFolder | None) -> TrainingData:
    """What this command names, or the run that is resumed, or the plan.

    Raises PlanError where there is neither data nor a job, RunError for data that cannot be read.
    """
    given = request.options.get("data")
    if given and request.job:
        raise PlanError(f"--data {given} and --job {request.job}: a job has its own data; leave --data out")
    named = request.job
    if named is None and not options.data and request.first is None:
        path = before.plan if before is not None and request.plan is None else request.plan or Path(PLAN)
        plan = load_plan(path) if path.exists() or request.plan is not None else None
        named = plan.run.model if plan is not None and plan.run.job else None
    if named is not None:
        return JobData(find_job(named))
    if not options.data:
        raise PlanError("no data: name a directory with --data, or a job of your own with --job")
    return ShippedImages(load_dataset(options.data))


def _check_engine(plan: Plan, fleet: Fleet, allow_plaintext: bool) -> str:
    """A remark on the engine, if any. Raises PlannerError where it cannot serve this plan."""
    if plan.run.engine.name != TORCH:
        return ""
    what = f"--engine {plan.run.engine.text}"
    if any(worker.compute.precision == FP16 for worker in plan.workers):
        raise PlanError(f"{what}: fp16 scales its loss, which it cannot do here; profile with --precision bf16 or fp32")
    if len(plan.names) == 1:
        return f"{plan.server} trains alone: {what} has no other device to exchange gradients with"
    for name, framework in plan.frameworks.items():
        if framework != TORCH:
            raise PlanError(f"{what}: {name} computes with {framework}; plan again with --framework torch")
    require_trust(fleet, plan.names, what, allow_plaintext)
    return f"gradients go through torch.distributed ({plan.run.engine.text}), unencrypted"


def _plan(request: TrainRequest, before: RunFolder | None, on_note: Callable[[str], None]) -> Plan:
    """The plan that is named, or that of the run that goes on, for the steps asked for."""
    if request.plan is None and before is not None:
        plan = load(Plan, before.plan, RUN_REMEDY)
    else:
        plan = load_plan(request.plan or Path(PLAN))
    if request.steps is None or request.steps == plan.run.steps:
        return plan
    for note in notes_scaled(plan.run.strategy):
        on_note(note)
    return plan.for_steps(request.steps)
