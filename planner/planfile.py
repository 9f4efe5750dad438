"""plan.json: the cluster that was chosen, with what was predicted of it."""

from pathlib import Path
from typing import NamedTuple

from planner.decode import load
from planner.predict import Prediction


class PlannedWorker(NamedTuple):
    """A member as predicted: its part of the steps, T_i^C, P_i^C, and alpha and beta of Eq. 2 and 3.

    Watts and their factors are None where unknown; power_source says where the watts come from.
    """

    name: str
    steps: float
    cycle_s: float
    power_w: float | None
    power_source: str
    alpha_time: float
    beta_time: float
    alpha_power: float | None
    beta_power: float | None


class Plan(NamedTuple):
    """plan.json: the cluster that ``planner train`` is to run, with what was predicted of it.

    interval: bounds of the metric's value (95 %, from the measured spread); network_bytes: of the run;
    shares: of the workers' time, by what it goes to.
    """

    schema: int
    fleet: str
    model: str
    framework: str
    metric: str
    steps: int
    batch: int
    server: str
    workers: tuple[PlannedWorker, ...]
    prediction: Prediction
    interval: tuple[float, ...]
    network_bytes: float
    bottleneck: str
    shares: dict[str, float]


def load_plan(path: Path) -> Plan:
    """Read plan.json. Raises RecordError, with the remedy, when it is missing or does not fit."""
    return load(Plan, path, remedy="run `planner recommend` again")
