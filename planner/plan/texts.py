"""Texts of options name a strategy, an optimizer, an engine or a stream."""

from collections.abc import Callable
from typing import TypeVar

from backends.frameworks.optimizer import OWN
from backends.strategies.engine import OWN_ENGINE, Engine
from backends.strategies.optimizer_spec import OptimizerSpec
from backends.strategies.presets import SERVERLESS
from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from backends.streams.spec import StreamSpec
from planner.errors import PlanError
from planner.profile.file import Profile

Parsed = TypeVar("Parsed")

#: The text of a strategy or an engine that is to be found.
AUTO = "auto"


def parse_strategy(text: str) -> Strategy:
    """What ``--strategy`` names. Raises PlanError naming what does not fit."""
    return _parsed("--strategy", text, Strategy.from_text)


def parse_optimizer(text: str) -> OptimizerSpec:
    """What ``--optimizer`` names. Raises PlanError naming what does not fit."""
    return _parsed("--optimizer", text, OptimizerSpec.from_text)


def with_optimizer(strategy: Strategy, optimizer: str | None) -> Strategy:
    """A strategy with the optimizer that was asked for besides.

    Raises PlanError where it does not fit, and where the strategy's text names another one.
    """
    if optimizer is None:
        return strategy
    try:
        found = strategy.with_optimizer(optimizer)
        if found is not strategy and strategy.names_optimizer:
            raise ValueError(f"the strategy names {strategy.optimizer.as_text()}; leave one of them out")
        return found
    except ValueError as error:
        raise PlanError(f"--optimizer {optimizer} with strategy {strategy.text}: {error}") from error


def optimizer_of_job(profile: Profile, model: str | None, given: str | None) -> str | None:
    """The optimizer that was asked for, or else the one that the profiled job brings."""
    steps = [step for device in profile.devices.values() for step in device.steps if model in (None, step.model)]
    return OWN if given is None and steps and all(step.setup.own_optimizer for step in steps) else given


def without_server(strategy: str, optimizer: str | None, engine: str) -> tuple[str, tuple[str, ...]]:
    """A strategy that has no server in place of the default one, for a job's own optimizer.

    engine: its text, or auto; torch.distributed has no use for a strategy. The second part holds
    the note that says so, if any. Raises PlanError for an unknown engine.
    """
    uses_strategy = engine == AUTO or parse_engine(engine).name == OWN_ENGINE.name
    if optimizer != OWN or strategy != PARAMETER_SERVER.text or not uses_strategy:
        return strategy, ()
    return SERVERLESS, (
        f"strategy {SERVERLESS}, because the job brings its own optimizer, which a server cannot run; "
        "--optimizer adam or another of planner's own works with a server, too",
    )


def parse_engine(text: str) -> Engine:
    """What ``--engine`` names. Raises PlanError naming what does not fit."""
    return _parsed("--engine", text, Engine.from_text)


def parse_stream(text: str) -> StreamSpec:
    """What ``--stream`` names. Raises PlanError for an unknown source, option or value."""
    return _parsed("--stream", text, StreamSpec.from_text)


def _parsed(option: str, text: str, from_text: Callable[[str], Parsed]) -> Parsed:
    try:
        return from_text(text)
    except ValueError as error:
        raise PlanError(f"{option} {text}: {error}") from error
