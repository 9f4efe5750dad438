"""A run goes on from the checkpoint of another one, if that fits the plan."""

import contextlib
from collections.abc import Mapping
from typing import Any

from backends import models
from backends.strategies.strategy import Strategy
from backends.training import checkpoint
from planner.errors import PlanError, RecordError
from planner.paths import RunFolder
from planner.plan.file import Plan
from planner.train.event_log import is_written

RUN_REMEDY = "give --resume a run folder that `planner train` made"


def require_checkpoint(before: RunFolder) -> None:
    """Raises RecordError where there is no checkpoint, PlanError of a run that goes on.

    What a run that was killed has left of a checkpoint is removed.
    """
    if is_written(before.events):
        raise PlanError(f"cannot resume {before.path}: it is still training; stop it with Ctrl-C, or let it end")
    remedy_without = "train again without --resume, or give --resume another run folder"
    before.require_checkpoint("resume", RUN_REMEDY, remedy_without)
    with contextlib.suppress(OSError):  # of a folder that is only read
        before.unfinished_checkpoint.unlink(missing_ok=True)


def require_resumable(plan: Plan, before: RunFolder | None) -> None:
    """Raises RecordError or PlanError where the plan cannot go on from the checkpoint."""
    if before is None:
        return
    try:
        meta = checkpoint.peek(str(before.checkpoint))
    except (OSError, ValueError) as error:
        raise RecordError(f"cannot resume {before.path}: {error}; {RUN_REMEDY}") from error
    try:
        checkpoint.require_optimizer(meta, plan.run_strategy.shared_kind)
    except ValueError as error:
        raise PlanError(f"cannot resume {before.path}: {error}") from error
    _require_inner_optimizer(meta, plan, before)
    if meta.get("model") != plan.run.model:
        raise PlanError(f"{before.checkpoint} is of {meta.get('model')}, the plan is for {plan.run.model}")
    if models.is_user_model(plan.run.model) and meta.get("framework", plan.framework) != plan.framework:
        raise PlanError(
            f"{before.checkpoint} is of {plan.run.model} in {meta['framework']}, the plan computes with "
            f"{plan.framework}; only a known model goes on in another framework: plan again with "
            f"--framework {meta['framework']}"
        )
    evaluated = [evaluation["step"] for evaluation in meta["evaluations"][-1:]]
    if meta["step"] > plan.run.steps:
        raise PlanError(
            f"cannot resume {before.path}: it is at step {meta['step']}, and --steps, or else the plan, asks for "
            f"{plan.run.steps} steps in all; give more than {meta['step']} with --steps"
        )
    if meta["step"] == plan.run.steps and evaluated == [plan.run.steps]:
        raise PlanError(f"{before.path} has made all its {meta['step']} steps; give more with --steps")


def _require_inner_optimizer(meta: Mapping[str, Any], plan: Plan, before: RunFolder) -> None:
    """Rounds of local steps have one besides the outer one, and each member's file what it keeps.

    Raises PlanError where the plan has another.
    """
    wanted = plan.run_strategy
    if not wanted.local or not meta.get("strategy"):
        return
    try:
        saved = Strategy.from_text(meta["strategy"])
    except ValueError as error:
        raise PlanError(f"cannot resume {before.path}: its strategy {meta['strategy']}: {error}") from error
    if saved.local and saved.optimizer.name != wanted.optimizer.name:
        raise PlanError(
            f"cannot resume {before.path}: its local steps are by {saved.optimizer.name}, the plan's by "
            f"{wanted.optimizer.name}; go on with --optimizer {saved.optimizer.name}, or begin a new run"
        )
