"""A request says what is asked of ``recommend``: what to train, on what, and what counts."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from backends.frameworks.optimizer import OWN
from backends.strategies.engine import OWN_ENGINE, Engine
from backends.strategies.optimizer_spec import OptimizerSpec
from backends.strategies.presets import SERVERLESS
from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from backends.streams.spec import StreamSpec
from planner.errors import PlanError
from planner.plan.file import TORCH_EXCHANGES
from planner.predict.batches import TRAINING_SAMPLES
from planner.predict.interval import RECORDED, ModelErrors
from planner.predict.sample_efficiency import RoundsEfficiency
from planner.profile.file import Profile

#: The text of a strategy or an engine that is to be found.
AUTO = "auto"


def parse_strategy(text: str) -> Strategy:
    """What ``--strategy`` names. Raises PlanError naming what does not fit."""
    try:
        return Strategy.from_text(text)
    except ValueError as error:
        raise PlanError(f"--strategy {text}: {error}") from error


def parse_optimizer(text: str) -> OptimizerSpec:
    """What ``--optimizer`` names. Raises PlanError naming what does not fit."""
    try:
        return OptimizerSpec.from_text(text)
    except ValueError as error:
        raise PlanError(f"--optimizer {text}: {error}") from error


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
    return OWN if given is None and steps and all(step.own_optimizer for step in steps) else given


def training_samples(profile: Profile, model: str | None, given: int | None) -> int:
    """How many there are: as given, or else of the profiled job, or else the usual number."""
    steps = (step for device in profile.devices.values() for step in device.steps if model in (None, step.model))
    return given or next((step.samples for step in steps if step.samples), TRAINING_SAMPLES)


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
    try:
        return Engine.from_text(text)
    except ValueError as error:
        raise PlanError(f"--engine {text}: {error}") from error


def parse_stream(text: str) -> StreamSpec:
    """What ``--stream`` names. Raises PlanError for an unknown source, option or value."""
    try:
        return StreamSpec.from_text(text)
    except ValueError as error:
        raise PlanError(f"--stream {text}: {error}") from None


class RecommendRequest(NamedTuple):
    """What to predict and how to rank it; what is None or empty is left to the profile.

    weights: of the metrics by name; None for EDP, or for time where watts are unknown.
    framework: on all devices; None for the fastest on each.
    steps: of the whole run; None for what the profile was made for.
    batch: images of a worker's step.
    global_batch: images that all workers share in a step, each as many as it computes in the same
        time, in place of ``batch``.
    server: the only admissible host of the parameter server.
    include, exclude: devices that every cluster has, or none.
    count_idle: add the idle watts of devices left out (Eq. 5 counts members alone).
    base_watts: watts added to every cluster.
    rates: what-if line rates of devices' networks, bytes/s.
    training_samples, sample_efficiency, critical_batch, rounds_efficiency: as in
        ``batches.RunLength``; the first is the job's own where it is not given.
    engine: torch.distributed has an exchange of its own in place of ``strategy``.
    allow_plaintext: whether its gradients may cross networks as they are.
    optimizer: NAME or NAME:key=value,...; None for that of the strategy.
    clip_norm: to which gradients are scaled down; None for no limit.
    errors: of the model, which intervals count besides the measured spread.
    stream: as which samples arrive; None where they are there from the start.
    rates_seed: of the rates of streams that are drawn.
    """

    weights: Mapping[str, float] | None = None
    model: str | None = None
    framework: str | None = None
    steps: int | None = None
    batch: int | None = None
    server: str | None = None
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    count_idle: bool = False
    base_watts: float = 0.0
    rates: Mapping[str, float] = MappingProxyType({})
    strategy: Strategy = PARAMETER_SERVER
    training_samples: int | None = None
    sample_efficiency: float | None = None
    critical_batch: float | None = None
    rounds_efficiency: RoundsEfficiency | None = None
    engine: Engine = OWN_ENGINE
    allow_plaintext: bool = False
    optimizer: str | None = None
    global_batch: int | None = None
    clip_norm: float | None = None
    errors: ModelErrors = RECORDED
    stream: StreamSpec | None = None
    rates_seed: int = 0

    def by(self, engine: Engine) -> "RecommendRequest":
        """This request, of clusters that an engine trains.

        torch.distributed makes synchronous steps in which all members have the mean of all
        gradients, or their sum weighed by rates. It is ranked as an all-reduce of the planner's own
        that takes another time.
        """
        if engine.name == OWN_ENGINE.name:
            return self
        return self._replace(strategy=TORCH_EXCHANGES[engine.batching], engine=engine)

    def check(self) -> None:
        """Raises PlanError naming the first number that is out of range."""
        _at_least("--steps", 1 if self.steps is None else self.steps, 1)
        _at_least("--batch-size", 1 if self.batch is None else self.batch, 1)
        _at_least("--global-batch", 1 if self.global_batch is None else self.global_batch, 1)
        if self.batch is not None and self.global_batch is not None:
            raise PlanError("--batch-size and --global-batch: each worker has that many, or all together; choose one")
        _at_least("--base-watts", self.base_watts, 0)
        if self.clip_norm is not None and not 0 < self.clip_norm < math.inf:
            raise PlanError(f"--clip-norm: {self.clip_norm:g} is out of range; give a number above 0")
        for name, rate in self.rates.items():
            _at_least(f"--rate {name}", rate, 1)


def _at_least(option: str, value: float, least: float) -> None:
    if not least <= value < math.inf:
        raise PlanError(f"{option}: {value:g} is out of range; give a number of at least {least:g}")
