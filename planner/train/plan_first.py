"""`planner train --metric` profiles what is missing and plans, as two commands before it would."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from backends.strategies.engine import OWN
from backends.strategies.strategy import PARAMETER_SERVER
from planner.console import OnProgress
from planner.errors import PlanError
from planner.fleet.device import Fleet
from planner.json_records import save
from planner.paths import PLAN, PROFILE
from planner.plan.engine_search import best_of
from planner.plan.file import Plan
from planner.plan.next_measurements import next_wanted
from planner.plan.recommend import make_plan
from planner.plan.texts import (
    AUTO,
    optimizer_of_job,
    parse_engine,
    parse_optimizer,
    parse_strategy,
    without_server,
)
from planner.predict.interval import newest as newest_errors
from planner.predict.request import RecommendRequest
from planner.predict.sample_efficiency import Learning, newest
from planner.profile.file import DEFAULT_STEPS, Profile
from planner.profile.profiler import Profiler
from planner.profile.request import ProfileRequest
from planner.train.training_data import TrainingData

#: Trained where neither a model nor a job is named, and samples of its step.
MODEL, BATCH = "cifar10", 32


class PlanFirst(NamedTuple):
    """What the profile and the plan of a run are to be made for.

    request: model, steps and batch of its settings are chosen where they are not given.
    strategy, engine: their texts, or auto; None for what is usual.
    """

    request: RecommendRequest
    strategy: str | None = None
    engine: str | None = None

    def check(self) -> None:
        """Raises PlanError for a text that names nothing, before any device is reached."""
        for text, parse in (
            (self.strategy, parse_strategy), (self.engine, parse_engine), (self.request.optimizer, parse_optimizer),
        ):  # fmt: skip
            if text is not None and text != AUTO:
                parse(text)

    @property
    def ranking(self) -> RecommendRequest:
        """The request by the strategy and the engine, where they are named."""
        request = self.request
        if self.strategy is not None and self.strategy != AUTO:
            request = request.setting(strategy=parse_strategy(self.strategy))
        return request.by(parse_engine(self.engine)) if self.engine is not None and self.engine != AUTO else request


def plan_first(
    asked: PlanFirst, data: TrainingData, fleet: Fleet, on_profile: OnProgress, on_note: Callable[[str], None]
) -> Plan:
    """Profile what is missing, recommend, and write plan.json. Raises PlannerError."""
    request, settings, job = asked.request, asked.request.settings, data.job
    model = job.text if job else settings.model or MODEL
    request = request.setting(model=model, steps=settings.steps or DEFAULT_STEPS, batch=settings.batch or BATCH)
    request = request._replace(
        framework=request.framework or (job.framework if job else None),
        allow_plaintext=request.allow_plaintext or fleet.trusted_network,
        learning=Learning(data.samples or 0), errors=newest_errors(Path()),
    )  # fmt: skip
    profile = _profiled(asked._replace(request=request).ranking, data, fleet, on_profile)
    request = request._replace(optimizer=optimizer_of_job(profile, model, request.optimizer))
    strategy, engine = asked.strategy or PARAMETER_SERVER.text, asked.engine or OWN
    noted: tuple[str, ...] = ()
    if asked.strategy is None:
        strategy, noted = without_server(strategy, request.optimizer, engine)
    ranked = best_of(profile, request, engine, strategy, newest(Path()))
    for note in (*noted, *((*ranked.notes, *ranked.details) if AUTO in (strategy, engine) else ())):
        on_note(note)
    plan = make_plan(ranked, str(fleet.path))
    save(plan, Path(PLAN))
    return plan


def _profiled(asked: RecommendRequest, data: TrainingData, fleet: Fleet, on_profile: OnProgress) -> Profile:
    """The profile, with what it lacked of this model. Raises PlanError where no device has it."""
    run = asked.settings
    request = ProfileRequest(
        (run.model,), run.batch, framework=asked.framework, input_shape=data.input_shape, classes=data.classes,
        steps_planned=run.steps, job=data.job, compute=run.compute,
        stream=run.stream if run.stream is not None and run.stream.source != "replay" else None,
    )  # fmt: skip
    more = functools.partial(next_wanted, request=asked)
    profiler = Profiler(fleet, request, Path(PROFILE), on_profile, next_wanted=more)
    profile = profiler.run(Path(PROFILE).with_suffix(".log"))
    if all(device.failed((run.model,)) for device in profile.devices.values()):
        reasons = {name: device.error or device.failures[run.model] for name, device in profile.devices.items()}
        raise PlanError("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
    return profile
