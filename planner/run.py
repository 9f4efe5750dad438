"""From a request to a trained model: plan if asked to, check that plan and data fit, launch, account."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from backends import checkpoint, models
from planner import outcome, training
from planner.decode import load, save
from planner.errors import PlanError, RecordError
from planner.fleet import Fleet
from planner.launch import Launch, OnEvent
from planner.plan import make_plan, recommend
from planner.planfile import Plan
from planner.profile import Profiler, Wanted
from planner.rank import one_metric
from planner.runs import PLAN, PROFILE, RunFolder
from planner.training import Options


class Request(NamedTuple):
    """What the operator asked for; None where they left it to the plan or the run that is resumed."""

    fleet: Fleet
    plan: Path | None
    metric: str | None
    model: str | None
    steps: int | None
    batch: int
    framework: str
    options: Options
    resume: Path | None
    runs: Path


class View(NamedTuple):
    """What shows progress: of profiling, of the plan that was chosen, and of training."""

    on_profile: Callable[[str, str, float | None], None]
    on_plan: Callable[[Plan], None]
    on_event: OnEvent


def train(request: Request, view: View) -> tuple[dict[str, Any], RunFolder]:
    """Train; returns what result.json holds and the run's folder. Raises PlannerError."""
    before = RunFolder(request.resume) if request.resume else None
    options = _options(request, before)
    training.check(options)
    if not options.data:
        raise PlanError("no data: name a directory with --data")
    dataset = training.load_dataset(options.data)
    plan = _plan(request, options, dataset, before, view)
    _check_fit(plan, dataset)
    _check_checkpoint(plan, before)
    view.on_plan(plan)
    folder = RunFolder.create(request.runs, plan.model)
    save(plan, folder.plan)
    save(options, folder.options)
    launch = Launch(plan, request.fleet, dataset, options, folder, view.on_event)
    account = launch.run(before.checkpoint if before else None)
    parts = outcome.workers(plan, account, launch.windows, launch.spent)
    result = outcome.result(plan, account, parts, launch.built_s)
    save(result, folder.result)
    return result, folder


def _options(request: Request, before: RunFolder | None) -> Options:
    """Those of the run that is resumed, but for the data directory where another is given."""
    if before is None:
        return request.options
    saved = load(Options, before.options, "name a run folder that `planner train` made")
    return saved._replace(data=request.options.data or saved.data)


def _plan(request: Request, options: Options, dataset: Any, before: RunFolder | None, view: View) -> Plan:
    if request.metric is not None:
        plan = _plan_now(request, dataset, view, load(Plan, before.plan) if before else None)
    elif request.plan is None and before is not None:
        plan = load(Plan, before.plan, "name a run folder that `planner train` made")
    else:
        path = request.plan or Path(PLAN)
        plan = load(Plan, path, "run `planner recommend` first, or add --metric")
    return plan.for_steps(request.steps) if request.steps else plan


def _plan_now(request: Request, dataset: Any, view: View, before: Plan | None) -> Plan:
    """Profile what is missing, choose, and write plan.json."""
    model = request.model or (before.model if before else "cifar10")
    steps = request.steps or (before.steps if before else 100_000)
    wanted = Wanted(
        (model,), request.batch, framework=request.framework,
        input_shape=tuple(dataset.input_shape), classes=dataset.classes, steps_planned=steps,
    )  # fmt: skip
    profile = Profiler(request.fleet, wanted, Path(PROFILE), view.on_profile).run(Path(PROFILE).with_suffix(".log"))
    weights = one_metric(request.metric or "edp")
    ranked = recommend(profile, weights, model, request.framework, steps, request.batch)
    plan = make_plan(ranked, str(request.fleet.path))
    save(plan, Path(PLAN))
    return plan


def _check_fit(plan: Plan, dataset: Any) -> None:
    """A plan holds for the model it was profiled with: another image size is another model."""
    if models.is_user_model(plan.model):
        return
    try:
        needed = models.fingerprint(models.model(plan.model, tuple(dataset.input_shape), dataset.classes))
    except ValueError as error:
        raise PlanError(str(error)) from error
    if needed != plan.fingerprint:
        shape = "x".join(str(size) for size in dataset.input_shape)
        raise PlanError(
            f"{plan.model} was profiled for other images than these ({shape}, {dataset.classes} classes); "
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
    if meta["step"] >= plan.steps:
        raise PlanError(f"{before.path} has made all its {meta['step']} steps; give more with --steps")
