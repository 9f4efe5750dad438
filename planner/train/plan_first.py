"""`planner train --metric` profiles what is missing and plans, as two commands before it would."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from backends.strategies.engine import OWN
from backends.strategies.strategy import PARAMETER_SERVER
from backends.training.run_settings import RunSettings
from planner.console import OnProgress
from planner.errors import PlanError
from planner.fleet.device import Fleet
from planner.json_records import save
from planner.paths import PLAN, PROFILE
from planner.plan.engine_search import best_of
from planner.plan.file import Plan
from planner.plan.next_measurements import next_wanted
from planner.plan.rank import one_metric
from planner.plan.recommend import make_plan
from planner.plan.texts import (
    AUTO,
    optimizer_of_job,
    parse_engine,
    parse_optimizer,
    parse_strategy,
    parse_stream,
    without_server,
)
from planner.predict.interval import newest as newest_errors
from planner.predict.request import RecommendRequest
from planner.predict.sample_efficiency import Learning, newest
from planner.profile.file import DEFAULT_STEPS, Profile
from planner.profile.profiler import Profiler
from planner.profile.request import ProfileRequest
from planner.train.source import TrainingSource
from profilers.records.steps import ComputeSettings

#: Trained where neither a model nor a job is named, and samples of its step.
MODEL, BATCH = "cifar10", 32


class PlanFirst(NamedTuple):
    """What the profile and the plan of a run are to be made for; None for what is usual.

    metric: time, power, energy or edp.
    strategy, engine: their texts, or auto.
    optimizer, stream: their texts.
    seed: of the rates of streams that are drawn.
    """

    metric: str
    model: str | None = None
    steps: int | None = None
    batch: int | None = None
    framework: str | None = None
    strategy: str | None = None
    engine: str | None = None
    optimizer: str | None = None
    clip_norm: float | None = None
    compute: ComputeSettings = ComputeSettings()
    stream: str | None = None
    seed: int = 0
    allow_plaintext: bool = False

    def check(self) -> None:
        """Raises PlanError for a text that names nothing, before any device is reached."""
        for text, parse in (
            (self.strategy, parse_strategy), (self.engine, parse_engine),
            (self.optimizer, parse_optimizer), (self.stream, parse_stream),
        ):  # fmt: skip
            if text is not None and text != AUTO:
                parse(text)


def plan_first(
    asked: PlanFirst, source: TrainingSource, fleet: Fleet, on_profile: OnProgress, on_note: Callable[[str], None]
) -> Plan:
    """Profile what is missing, recommend, and write plan.json. Raises PlannerError."""
    model = source.job.text if source.job else asked.model or MODEL
    framework = asked.framework or (source.job.framework if source.job else None)
    profile = _profiled(asked._replace(model=model, framework=framework), source, fleet, on_profile)
    request = RecommendRequest(
        one_metric(asked.metric),
        RunSettings(
            model, steps=asked.steps or DEFAULT_STEPS, batch=asked.batch or BATCH, clip_norm=asked.clip_norm,
            stream=parse_stream(asked.stream) if asked.stream else None, rates_seed=asked.seed,
        ),
        optimizer=optimizer_of_job(profile, model, asked.optimizer), framework=framework,
        allow_plaintext=asked.allow_plaintext or fleet.trusted_network,
        learning=Learning(source.samples or 0), errors=newest_errors(Path()),
    )  # fmt: skip
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


def _profiled(asked: PlanFirst, source: TrainingSource, fleet: Fleet, on_profile: OnProgress) -> Profile:
    """The profile, with what it lacked of this model. Raises PlanError where no device has it."""
    assert asked.model is not None, "the caller has chosen one"
    stream = parse_stream(asked.stream) if asked.stream else None
    request = ProfileRequest(
        (asked.model,), asked.batch or BATCH, framework=asked.framework,
        input_shape=source.input_shape, classes=source.classes, steps_planned=asked.steps or DEFAULT_STEPS,
        job=source.job, compute=asked.compute,
        stream=stream if stream is not None and stream.source != "replay" else None,
    )  # fmt: skip
    planned = RunSettings(asked.model, steps=request.steps_planned, batch=request.batch)
    ranking = RecommendRequest(one_metric(asked.metric), planned, framework=asked.framework)
    more = functools.partial(next_wanted, request=ranking)
    profiler = Profiler(fleet, request, Path(PROFILE), on_profile, next_wanted=more)
    profile = profiler.run(Path(PROFILE).with_suffix(".log"))
    if all(device.failed((asked.model,)) for device in profile.devices.values()):
        reasons = {name: device.error or device.failures[asked.model] for name, device in profile.devices.items()}
        raise PlanError("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
    return profile
