"""From a request to a trained model: plan if asked to, check that plan and data fit, launch, account."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from backends import models
from backends.frameworks.base import FRAMEWORKS
from backends.strategies.strategy import PARAMETER_SERVER
from backends.training import checkpoint
from planner.errors import PlanError, RecordError
from planner.fleet.file import load_fleet
from planner.json_records import load, save
from planner.paths import FLEET, PLAN, PROFILE, RunFolder
from planner.plan.file import Plan, load_plan
from planner.plan.rank import one_metric
from planner.plan.recommend import make_plan
from planner.plan.request import RecommendRequest
from planner.plan.strategy_search import AUTO, best_of
from planner.predict.batch_size import notes_scaled
from planner.predict.sample_efficiency import newest
from planner.predict.strategy import parse_option
from planner.profile.file import DEFAULT_STEPS
from planner.profile.profiler import Profiler
from planner.profile.request import ProfileRequest
from planner.train import orders
from planner.train import result as outcome
from planner.train.event_log import OnEvent
from planner.train.launch import Launch
from planner.train.orders import Options

RUN_REMEDY = "name a run folder that `planner train` made"


class Request(NamedTuple):
    """What the operator asked for; None where they left it to the plan or the run that is resumed.

    options: the fields of training.Options that they gave.
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


class View(NamedTuple):
    """What shows progress: of profiling, of the plan that was chosen and what is to be known of it, and of training."""

    on_profile: Callable[[str, str, float | None], None]
    on_plan: Callable[[Plan], None]
    on_note: Callable[[str], None]
    on_event: OnEvent


def train(request: Request, view: View) -> tuple[dict[str, Any], RunFolder]:
    """Train; returns what result.json holds and the run's folder. Raises PlannerError."""
    fleet = load_fleet(request.fleet) if request.fleet else None
    before = RunFolder(request.resume) if request.resume else None
    options = _options(request, before)
    if options.strategy == AUTO and request.metric is None:
        raise PlanError("--strategy auto: a plan has its own; add --metric to make another plan")
    orders.check(options._replace(strategy=None) if options.strategy == AUTO else options)
    if not options.data:
        raise PlanError("no data: name a directory with --data")
    dataset = orders.load_dataset(options.data)
    plan = _plan(request, options, dataset, before, view)
    options = options._replace(strategy=plan.strategy.as_text()) if options.strategy == AUTO else options
    plan = plan.with_strategy(None if options.strategy is None else parse_option(options.strategy))
    _check_fit(plan, dataset)
    _check_checkpoint(plan, before)
    view.on_plan(plan)
    folder = RunFolder.create(request.runs, plan.model)
    launch = Launch(plan, fleet or load_fleet(Path(plan.fleet)), dataset, options, folder, view.on_event)
    return carry_out(launch, before.checkpoint if before else None), folder


def carry_out(launch: Launch, resume: Path | None = None, lasting_s: float = math.inf) -> dict[str, Any]:
    """Run what is planned, or so long of it, and account for it: the run's folder then holds all. Raises RunError."""
    plan, folder, told = launch.plan, launch.folder, launch.telemetry
    save(plan, folder.plan)
    save(launch.options, folder.options)
    account = launch.run(resume, lasting_s)
    parts = outcome.workers(plan, account, told.windows, told.spent)
    result = outcome.result(plan, account, parts, told.built_s, told.compressors)
    result["notes"] += outcome.learnt(account.evaluations, launch.dataset.classes)
    save(result, folder.result)
    return result


def _options(request: Request, before: RunFolder | None) -> Options:
    """What was asked for, over those of the run that is resumed."""
    saved = Options("") if before is None else load(Options, before.options, RUN_REMEDY)
    return saved._replace(**request.options)


def _plan(request: Request, options: Options, dataset: Any, before: RunFolder | None, view: View) -> Plan:
    if request.metric is not None:
        return _plan_now(request, options, dataset, view, load(Plan, before.plan, RUN_REMEDY) if before else None)
    if request.plan is None and before is not None:
        plan = load(Plan, before.plan, RUN_REMEDY)
    else:
        plan = load_plan(request.plan or Path(PLAN))
    if request.steps is None or request.steps == plan.steps:
        return plan
    for note in notes_scaled(plan.strategy):
        view.on_note(note)
    return plan.for_steps(request.steps)


def _plan_now(request: Request, options: Options, dataset: Any, view: View, before: Plan | None) -> Plan:
    """Profile what is missing, choose, and write plan.json."""
    model = request.model or (before.model if before else "cifar10")
    steps = request.steps or (before.steps if before else DEFAULT_STEPS)
    batch = request.batch or (before.batch if before else 32)
    framework = request.framework or (before.framework if before and before.framework in FRAMEWORKS else None)
    fleet = load_fleet(request.fleet or Path(before.fleet if before else FLEET))
    wanted = ProfileRequest(
        (model,), batch, framework=framework,
        input_shape=tuple(dataset.input_shape), classes=dataset.classes, steps_planned=steps,
    )  # fmt: skip
    profile = Profiler(fleet, wanted, Path(PROFILE), view.on_profile).run(Path(PROFILE).with_suffix(".log"))
    asked = RecommendRequest(
        one_metric(request.metric or "edp"), model=model, framework=framework, steps=steps, batch=batch,
        training_samples=len(dataset.train_labels),
    )  # fmt: skip
    ranked = best_of(profile, asked, options.strategy or PARAMETER_SERVER.text, newest(Path()))
    for note in ranked.notes if options.strategy == AUTO else ():
        view.on_note(note)
    plan = make_plan(ranked, str(fleet.path))
    save(plan, Path(PLAN))
    return plan


def _check_fit(plan: Plan, dataset: Any) -> None:
    """A plan holds for the model it was profiled with: another image size is another model."""
    shape, classes = tuple(dataset.input_shape), dataset.classes
    needed = ProfileRequest((plan.model,), input_shape=shape, classes=classes).fingerprint(plan.model)
    if needed != plan.fingerprint and models.is_user_model(plan.model):
        raise PlanError(f"{plan.model} has changed since it was profiled; profile and recommend again")
    if needed != plan.fingerprint:
        images = "x".join(str(size) for size in shape)
        raise PlanError(
            f"{plan.model} was profiled for other images than these ({images}, {classes} classes); "
            "profile again with the same --data"
        )


def _check_checkpoint(plan: Plan, before: RunFolder | None) -> None:
    if before is None:
        return
    try:
        meta = checkpoint.peek(str(before.checkpoint))
    except (OSError, ValueError) as error:
        raise RecordError(f"cannot resume {before.path}: {error}") from error
    if meta["model"] != plan.model:
        raise PlanError(f"{before.checkpoint} is of {meta['model']}, the plan is for {plan.model}")
    if models.is_user_model(plan.model) and meta.get("framework", plan.framework) != plan.framework:
        raise PlanError(
            f"{before.checkpoint} is of {plan.model} in {meta['framework']}, the plan computes with {plan.framework}; "
            f"only a known model goes on in another framework: plan again with --framework {meta['framework']}"
        )
    evaluated = [evaluation["step"] for evaluation in meta["evaluations"][-1:]]
    if meta["step"] > plan.steps or (meta["step"] == plan.steps and evaluated == [plan.steps]):
        raise PlanError(f"{before.path} has made all its {meta['step']} steps; give more with --steps")
