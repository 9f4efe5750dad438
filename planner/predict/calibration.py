"""A calibration holds the errors that audits showed of predictions, beside the measured spread.

The time of a run has the relative variance v + a^2 sum_i g_i^2 + e^2 x^2 + r^2. v comes from the
measured spread; g_i is what the time changes by a gradient of member i, and x = 1 - sum_i g_i the
share that is no computing. a, e and r are the errors of a device's step, of the model of an
exchange, by its kind, and of what all devices of a run have in common: they are fitted
to audits of many fleets. Where `planner audit` has seen a larger error of a kind here, that counts.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from backends.strategies.engine import TORCH, Engine
from backends.strategies.strategy import Strategy
from planner.json_records import load
from planner.predict.costs import Costs, ModelErrors
from planner.predict.seen_errors import SeenErrors, seen_errors
from planner.provenance import NAMEPLATE

SHIPPED = Path(__file__).with_suffix(".json")
REMEDY = "install planner again"


class ExchangeError(NamedTuple):
    """The relative error of the time of exchanges of one kind, from so many runs."""

    kind: str
    error: float
    runs: int


class Calibration(NamedTuple):
    """Relative errors, standard deviations each, of the parts of a prediction.

    step: of the time of a device's step; run: of what all steps of a run have in common.
    exchanges: by kind; watts: of a device's busy watts, where a sensor or a power model gives them.
    fleets, runs: how many were audited; emulated: whether a device of them was. It then tells
        nothing of fleets without any.
    date: of the fit, YYYY-MM-DD.
    """

    schema: int
    step: float
    run: float
    exchanges: tuple[ExchangeError, ...]
    watts: float
    fleets: int
    runs: int
    emulated: bool
    date: str

    def of_exchange(self, kind: str) -> float:
        """That of a kind; of one that was never audited the largest there is."""
        known = {each.kind: each.error for each in self.exchanges}
        return known.get(kind, max(known.values(), default=0.0))

    def widened_by(self, seen: SeenErrors) -> "Calibration":
        """With at least the errors that were seen, by kind."""
        runs = {each.kind: each.runs for each in self.exchanges}
        kinds = dict.fromkeys([*runs, *seen.errors])
        wider = (
            ExchangeError(kind, max(self.of_exchange(kind), seen.of_kind(kind)), runs.get(kind, 0)) for kind in kinds
        )
        return self._replace(exchanges=tuple(wider))

    def fits(self, costs: Costs) -> bool:
        """Whether it tells of such devices."""
        return not self.emulated or any(source.emulated for source in costs.power_sources)

    def applied_to(self, costs: Costs) -> Costs:
        """The same costs with these errors beside those of the measured means, if it fits them."""
        if not self.fits(costs):
            return costs
        errors = costs.devices.errors
        # The error of watts from a fleet file is not known, and is told as such.
        read = np.array([source.kind != NAMEPLATE for source in costs.power_sources])
        wider = errors._replace(
            gradient=np.hypot(errors.gradient, self.step), busy_w=np.hypot(errors.busy_w, self.watts * read)
        )
        found = ModelErrors(self.of_exchange(exchange_kind(costs.strategy, costs.engine)), self.run)
        return costs._replace(devices=costs.devices._replace(errors=wider), model_errors=found)


def exchange_kind(strategy: Strategy, engine: Engine) -> str:
    """The kind of an exchange: its topology, and when a member waits for others."""
    if engine.name == TORCH:
        return "torch.distributed"
    waits = strategy.sync.waits_for(2) > 1
    when = "rounds" if strategy.local else "synchronous" if waits else "asynchronous"
    return f"{strategy.topology.name}, {when}"


def newest(folder: Path) -> Calibration:
    """The shipped one, with the errors that an audit in a folder has seen. Raises RecordError."""
    return load(Calibration, SHIPPED, REMEDY).widened_by(seen_errors(folder))
