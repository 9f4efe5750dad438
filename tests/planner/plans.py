"""Plans made up for tests: workers with steps of 2 s and no time to build."""

from pathlib import Path
from typing import Any

from backends.strategies.engine import Engine
from backends.strategies.strategy import Strategy
from backends.streams.spec import StreamSpec
from backends.training.run_settings import RunSettings
from planner.json_records import save
from planner.plan.file import Plan, PlannedFactors, PlannedStream, PlannedWatts, PlannedWorker, load_plan
from planner.predict.run import Prediction
from planner.provenance import Provenance
from profilers.records.json_values import SCHEMA

NAMEPLATE = Provenance("nameplate", ("board",), detail="fleet file")


def planned(
    name: str,
    steps: float = 50.0,
    idle_w: float | None = 10.0,
    busy_w: float | None = 50.0,
    source: Provenance = NAMEPLATE,
) -> PlannedWorker:
    watts, factors = PlannedWatts(idle_w, busy_w, 40.0, source), PlannedFactors(1.0, 1.0, 1.0, 1.0)
    return PlannedWorker(name, steps, 2.0, 0.0, 2.0, watts, factors)


def streamed(waiting_share: float = 0.25, free_s: float = 1.5, bound_by: str = "its stream") -> PlannedStream:
    """Of a worker whose steps take 2 s because 32 samples take as long to arrive."""
    return PlannedStream(16.0, 32.0, free_s, 2.0, bound_by, waiting_share, 0.0, 0.0, None)


def plan(*workers: PlannedWorker, steps: int = 100, power_w: float | None = 80.0, **settings: Any) -> Plan:
    """100 steps in 100 s at 80 W, the server on the first worker; ``with_settings``."""
    made = Plan(
        SCHEMA, "fleet.toml", RunSettings("net", steps=steps, batch=32), "abc", "edp", workers[0].name, workers,
        Prediction(100.0, power_w), (), 0.0, {},
    )  # fmt: skip
    return with_settings(made, **settings)


def with_settings(made: Plan, **settings: Any) -> Plan:
    """The plan with other settings of what is run; a strategy, an engine and a stream as texts.

    All workers compute as ``compute`` says, where it is given.
    """
    for name, kind in (("strategy", Strategy), ("engine", Engine), ("stream", StreamSpec)):
        if settings.get(name) is not None:
            settings[name] = kind.from_text(settings[name])  # type: ignore[attr-defined]
    if "compute" in settings:
        made = made._replace(workers=tuple(each._replace(compute=settings["compute"]) for each in made.workers))
    return made._replace(run=made.run._replace(**settings))


def replan(path: Path, **settings: Any) -> Path:
    """The same of a plan in a file, or of the plan.json in a folder."""
    file = path / "plan.json" if path.is_dir() else path
    save(with_settings(load_plan(file), **settings), file)
    return file
