"""Training reads or makes a plan, checks that data and checkpoint fit it, and carries it out."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from backends.frameworks.base import FRAMEWORKS
from backends.strategies.engine import OWN, TORCH, Engine
from backends.strategies.strategy import PARAMETER_SERVER
from planner import units
from planner.errors import PlanError
from planner.fleet.device import Fleet, require_trust
from planner.fleet.file import load_fleet
from planner.jobs.reference import find_job
from planner.json_records import load, save
from planner.paths import FLEET, PLAN, PROFILE, RunFolder
from planner.plan.engine_search import best_of
from planner.plan.file import Plan, load_plan
from planner.plan.rank import one_metric
from planner.plan.recommend import make_plan
from planner.plan.request import (
    AUTO,
    RecommendRequest,
    optimizer_of_job,
    parse_strategy,
    with_optimizer,
    without_server,
)
from planner.plan.startup import startup_s
from planner.predict import calibration
from planner.predict.batch_size import notes_scaled
from planner.predict.sample_efficiency import newest
from planner.profile.file import DEFAULT_STEPS
from planner.profile.profiler import Profiler
from planner.profile.request import ProfileRequest
from planner.train import orders
from planner.train.data_division import data_division
from planner.train.event_log import OnEvent
from planner.train.injection import OFF, check_injection, injection_notes, predicted_injection
from planner.train.launch import Launch
from planner.train.orders import Options
from planner.train.result import end_of, learning_notes, run_result
from planner.train.resume import RUN_REMEDY, require_checkpoint, require_resumable
from planner.train.source import TrainingSource, check_fit
from planner.train.streams import predictable, stream_notes
from planner.train.trackers.request import TrackerRequest
from planner.train.training_data import load_dataset
from planner.train.worker_result import worker_results
from profilers.mixed_precision import FP16, FP32
from profilers.records.json_values import json_value


class TrainRequest(NamedTuple):
    """The operator's request; None leaves a field to the plan or to the run that is resumed.

    options: the fields of ``Options`` that were given.
    allow_plaintext: gradients may cross a network unencrypted.
    trackers: what else is written while it trains.
    """

    fleet: Path | None
    plan: Path | None
    metric: str | None
    model: str | None
    steps: int | None
    batch: int | None
    framework: str | None
    options: dict[str, Any]
    resume: Path | None
    runs: Path
    allow_plaintext: bool = False
    trackers: TrackerRequest = TrackerRequest()


class RunCallbacks(NamedTuple):
    """Called as profiling and training go on, with the plan, and with remarks on it."""

    on_profile: Callable[[str, str, float | None], None]
    on_plan: Callable[[Plan], None]
    on_note: Callable[[str], None]
    on_event: OnEvent


def train(request: TrainRequest, callbacks: RunCallbacks) -> tuple[dict[str, Any], RunFolder]:
    """Train; returns the content of result.json and the run's folder. Raises PlannerError."""
    request.trackers.check()
    fleet = load_fleet(request.fleet) if request.fleet else None
    before = RunFolder(request.resume) if request.resume else None
    if before is not None:
        require_checkpoint(before)
    options = _options(request, before)
    _check_options(options, makes_plan=request.metric is not None)
    source = _source(request, options, before)
    options = options._replace(job=source.job.text if source.job else None)
    orders.check_target(options)
    plan = _plan(request, options, source, before, callbacks)
    options = _as_planned(request, options, plan)
    predicted, plan = plan, _as_asked(plan, options, options.strategy if "strategy" in request.options else None)
    orders.check_momentum(options, plan.strategy)
    check_injection(options, plan)
    data = source.data(plan)
    for note in (*stream_notes(options, plan), *injection_notes(options, plan, data.sample_bytes)):
        callbacks.on_note(note)
    if note := check_fit(plan, source):
        callbacks.on_note(note)
    require_resumable(plan, before)
    fleet = fleet or load_fleet(Path(plan.fleet))
    engine_note = _check_engine(plan, fleet, request.allow_plaintext)
    callbacks.on_plan(plan)
    if (begins_s := startup_s(plan, {})) is not None:
        callbacks.on_note(f"devices are ready in about {units.seconds(begins_s)}; sending them data may take longer")
    if engine_note:
        callbacks.on_note(engine_note)
    if plan.clip_norm is not None and predicted.clip_norm is None:
        callbacks.on_note(f"gradients are clipped to a norm of {plan.clip_norm:g}, and the prediction is without it")
    division = data_division(plan, options, before)
    folder = RunFolder.create(request.runs, plan.model)
    observers = request.trackers.open(plan, folder)
    launch = Launch(plan, fleet, data, options, folder, callbacks.on_event, observers=observers, division=division)
    return carry_out(launch, before.checkpoint if before else None), folder


def carry_out(launch: Launch, resume: Path | None = None, lasting_s: float = math.inf) -> dict[str, Any]:
    """Run a plan to its end, or for ``lasting_s``; returns the content of result.json.

    The run's folder then holds plan, options, events, checkpoint and result. Raises RunError.
    """
    plan, folder = launch.plan, launch.folder
    save(plan, folder.plan)
    save(launch.options, folder.options)
    account = launch.run(resume, lasting_s)
    result = run_result(plan, account, worker_results(plan, account, launch.telemetry))
    result.update(end_of(account, orders.stop_rule(launch.options)))
    if launch.sent_bytes is not None:
        predicted_s = startup_s(plan, launch.sent_bytes)
        result["startup"] = {"predicted_s": predicted_s, "measured_s": launch.startup_s}
    if launch.division.by_label:
        result["partition"] = json_value(launch.division)
        result["notes"] += launch.division.notes(launch.data.samples)
    if launch.options.inject is not None:
        steps = {name: float(part["steps"]) for name, part in result["workers"].items()}
        expected = predicted_injection(launch.options, plan, steps, launch.data.sample_bytes)
        result["injection"] = {"inject": launch.options.inject, "predicted": json_value(expected)}
    if launch.data.classes is not None:
        result["notes"] += learning_notes(account.evaluations, launch.data.classes)
    save(result, folder.result)
    return result


def _options(request: TrainRequest, before: RunFolder | None) -> Options:
    """The options of the request, and otherwise those of the run that is resumed."""
    saved = Options() if before is None else load(Options, before.options, RUN_REMEDY)
    options = saved._replace(**request.options)
    return options._replace(inject=None) if options.inject == OFF else options


def _source(request: TrainRequest, options: Options, before: RunFolder | None) -> TrainingSource:
    """What this command names, or the run that is resumed, or the plan.

    Raises PlanError where there is neither data nor a job, RunError for data that cannot be read.
    """
    if request.options.get("data") and request.options.get("job"):
        raise PlanError(f"--data {options.data} and --job {options.job}: a job has its own data; leave --data out")
    named = options.job if not request.options.get("data") else None
    if named is None and not options.data and request.metric is None:
        path = before.plan if before is not None and request.plan is None else request.plan or Path(PLAN)
        plan = load_plan(path) if path.exists() or request.plan is not None else None
        named = plan.model if plan is not None and plan.job else None
    if named is not None:
        return TrainingSource(job=find_job(named))
    if not options.data:
        raise PlanError("no data: name a directory with --data, or a job of your own with --job")
    return TrainingSource(images=load_dataset(options.data))


def _check_options(options: Options, makes_plan: bool) -> None:
    """Raises PlanError as ``orders.check`` does, and for ``auto`` where a plan is there."""
    for name, value in (("strategy", options.strategy), ("engine", options.engine)):
        if value == AUTO and not makes_plan:
            raise PlanError(f"--{name} auto: a plan has its own; add --metric to make another plan")
    strategy, engine = (None if text == AUTO else text for text in (options.strategy, options.engine))
    orders.check(options._replace(strategy=strategy, engine=engine))


def _as_planned(request: TrainRequest, options: Options, plan: Plan) -> Options:
    """The options with what the plan has for ``auto``, and for a norm or a stream that is left out.

    A strategy beside the engine ``auto`` is that of the planner's own, if that was chosen. What
    a plan that this command names has of these counts more than the run that is resumed.
    """
    by_torch = options.engine == AUTO and Engine.from_text(plan.engine).name == TORCH
    norm, stream = (plan.clip_norm, plan.stream) if request.plan is not None else (None, None)
    return options._replace(
        strategy=plan.strategy.as_text() if options.strategy == AUTO or by_torch else options.strategy,
        engine=plan.engine if options.engine == AUTO else options.engine,
        stream=request.options.get("stream") or stream or options.stream or plan.stream,
        clip_norm=request.options.get("clip_norm") or norm or options.clip_norm or plan.clip_norm,
    )


def _as_asked(plan: Plan, options: Options, given: str | None) -> Plan:
    """The plan with the engine, the strategy, the optimizer and the norm that were asked for.

    Another strategy keeps the plan's optimizer, unless it names one.

    given: the strategy of this command, and not of the run that is resumed. Raises PlanError for
    one that the engine does not have.
    """
    if options.precision not in (None, plan.precision):
        raise PlanError(
            f"--precision {options.precision}: the plan was made of steps in {plan.precision}; "
            "plan again with --metric, or leave the option out"
        )
    plan = plan.with_engine(options.engine).with_clip_norm(options.clip_norm).with_stream(options.stream)
    if Engine.from_text(plan.engine).name != TORCH:
        if options.strategy is not None:
            strategy = parse_strategy(options.strategy)
            kept = None if strategy.names_optimizer else plan.strategy.optimizer.as_text()
            plan = plan.with_strategy(with_optimizer(strategy, options.optimizer or kept))
        return plan.with_optimizer(options.optimizer)
    if given is not None and not parse_strategy(given).same_as(plan.strategy):
        raise PlanError(
            f"--strategy {given}: --engine {plan.engine} has its own exchange, {plan.strategy.text}; "
            "leave one of them out"
        )
    return plan.with_optimizer(options.optimizer)


def _check_engine(plan: Plan, fleet: Fleet, allow_plaintext: bool) -> str:
    """A remark on the engine, if any. Raises PlannerError where it cannot serve this plan."""
    if Engine.from_text(plan.engine).name != TORCH:
        return ""
    what = f"--engine {plan.engine}"
    if plan.precision == FP16:
        raise PlanError(f"{what}: fp16 scales its loss, which it cannot do here; profile with --precision bf16 or fp32")
    if len(plan.names) == 1:
        return f"{plan.server} trains alone: {what} has no other device to exchange gradients with"
    for name, framework in plan.frameworks.items():
        if framework != TORCH:
            raise PlanError(f"{what}: {name} computes with {framework}; plan again with --framework torch")
    require_trust(fleet, plan.names, what, allow_plaintext)
    return f"gradients go through torch.distributed ({plan.engine}), unencrypted"


def _plan(
    request: TrainRequest, options: Options, source: TrainingSource, before: RunFolder | None, callbacks: RunCallbacks
) -> Plan:
    if request.metric is not None:
        return _plan_now(request, options, source, callbacks, load(Plan, before.plan, RUN_REMEDY) if before else None)
    if request.plan is None and before is not None:
        plan = load(Plan, before.plan, RUN_REMEDY)
    else:
        plan = load_plan(request.plan or Path(PLAN))
    if request.steps is None or request.steps == plan.steps:
        return plan
    for note in notes_scaled(plan.strategy):
        callbacks.on_note(note)
    return plan.for_steps(request.steps)


def _plan_now(
    request: TrainRequest, options: Options, source: TrainingSource, callbacks: RunCallbacks, before: Plan | None
) -> Plan:
    """Profile what is missing, choose, and write plan.json."""
    model = options.job or request.model or (before.model if before else "cifar10")
    steps = request.steps or (before.steps if before else DEFAULT_STEPS)
    batch = request.batch or (before.batch if before else 32)
    framework = request.framework or (before.framework if before and before.framework in FRAMEWORKS else None)
    framework = framework or (source.job.framework if source.job else None)
    fleet = load_fleet(request.fleet or Path(before.fleet if before else FLEET))
    to_profile = ProfileRequest(
        (model,), batch, framework=framework,
        input_shape=source.input_shape, classes=source.classes, steps_planned=steps, job=source.job,
        micro_batch=options.micro_batch,
        precision=options.precision or (before.precision if before else FP32),
    )  # fmt: skip
    profile = Profiler(fleet, to_profile, Path(PROFILE), callbacks.on_profile).run(Path(PROFILE).with_suffix(".log"))
    if all(device.failed((model,)) for device in profile.devices.values()):
        reasons = {name: device.error or device.failures[model] for name, device in profile.devices.items()}
        raise PlanError("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
    to_recommend = RecommendRequest(
        one_metric(request.metric or "edp"), model=model, framework=framework, steps=steps, batch=batch,
        training_samples=source.samples,
        allow_plaintext=request.allow_plaintext or fleet.trusted_network,
        optimizer=optimizer_of_job(profile, model, options.optimizer), clip_norm=options.clip_norm,
        calibration=calibration.newest(Path()),
        stream=predictable(profile, options.stream), rates_seed=options.seed,
    )  # fmt: skip
    strategy, engine = options.strategy or PARAMETER_SERVER.text, options.engine or OWN
    noted: tuple[str, ...] = ()
    if options.strategy is None:
        strategy, noted = without_server(strategy, to_recommend.optimizer, engine)
    ranked = best_of(profile, to_recommend, engine, strategy, newest(Path()))
    for note in (*noted, *(ranked.notes if AUTO in (strategy, engine) else ())):
        callbacks.on_note(note)
    plan = make_plan(ranked, str(fleet.path))
    save(plan, Path(PLAN))
    return plan
