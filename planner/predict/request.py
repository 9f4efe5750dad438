"""A request says what is asked of ``recommend``: what to train, on what, and what counts."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from backends.strategies.engine import OWN_ENGINE, Engine
from backends.strategies.strategy import Strategy
from backends.training.run_settings import RunSettings
from planner.errors import PlanError
from planner.predict.interval import RECORDED, ModelErrors
from planner.predict.run import Bill
from planner.predict.sample_efficiency import Learning

#: What torch.distributed does, as a strategy, by the batching of its engine.
TORCH_EXCHANGES = {
    "fixed": Strategy.from_text("allreduce"),
    "stream": Strategy.from_text("allreduce:batching=stream,aggregation=rates"),
}


class RecommendRequest(NamedTuple):
    """What to predict and how to rank it; what is None or empty is left to the profile.

    weights: of the metrics by name; None for EDP, or for time where watts are unknown.
    settings: of the run.
    global_batch: images that all workers share in a step, each as many as it computes in the same
        time, in place of the batch of the settings.
    optimizer: NAME or NAME:key=value,...; None for that of the strategy.
    framework: on all devices; None for the fastest on each.
    server: the only admissible host of the parameter server.
    include, exclude: devices that every cluster has, or none.
    rates: what-if line rates of devices' networks, bytes/s.
    allow_plaintext: whether gradients of torch.distributed may cross networks as they are.
    bill: watts that count besides those of members (Eq. 5 counts members alone).
    learning: what decides how many steps teach as much.
    errors: of the model, which intervals count besides the measured spread.
    """

    weights: Mapping[str, float] | None = None
    settings: RunSettings = RunSettings()
    global_batch: int | None = None
    optimizer: str | None = None
    framework: str | None = None
    server: str | None = None
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    rates: Mapping[str, float] = MappingProxyType({})
    allow_plaintext: bool = False
    bill: Bill = Bill()
    learning: Learning = Learning()
    errors: ModelErrors = RECORDED

    @property
    def strategy(self) -> Strategy:
        """How members exchange updates."""
        return self.settings.strategy

    def setting(self, **changes: Any) -> "RecommendRequest":
        """This request of a run with other settings."""
        return self._replace(settings=self.settings._replace(**changes))

    def by(self, engine: Engine) -> "RecommendRequest":
        """This request, of clusters that an engine trains.

        torch.distributed makes synchronous steps in which all members have the mean of all
        gradients, or their sum weighed by rates. It is ranked as an all-reduce of the planner's own
        that takes another time.
        """
        if engine.name == OWN_ENGINE.name:
            return self
        return self.setting(strategy=TORCH_EXCHANGES[engine.batching], engine=engine)

    def check(self) -> None:
        """Raises PlanError naming the first number that is out of range."""
        _at_least("--steps", self.settings.steps or 1, 1)
        _at_least("--batch-size", self.settings.batch or 1, 1)
        _at_least("--global-batch", 1 if self.global_batch is None else self.global_batch, 1)
        if self.settings.batch and self.global_batch is not None:
            raise PlanError("--batch-size and --global-batch: each worker has that many, or all together; choose one")
        _at_least("--base-watts", self.bill.extra_w, 0)
        clip_norm = self.settings.clip_norm
        if clip_norm is not None and not 0 < clip_norm < math.inf:
            raise PlanError(f"--clip-norm: {clip_norm:g} is out of range; give a number above 0")
        for name, rate in self.rates.items():
            _at_least(f"--rate {name}", rate, 1)


def _at_least(option: str, value: float, least: float) -> None:
    if not least <= value < math.inf:
        raise PlanError(f"{option}: {value:g} is out of range; give a number of at least {least:g}")
