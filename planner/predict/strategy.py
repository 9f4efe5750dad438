"""A strategy tells the planner how many bytes each member of a cluster sends and receives in a
step.
"""

from typing import NamedTuple

from backends.frameworks.base import Variable
from backends.strategies.message import DENSE, bytes_of
from backends.strategies.strategy import PARAMETER_SERVER, Strategy
from planner.errors import PlanError
from profilers.records import StepProfile


class TrafficShare(NamedTuple):
    """Bytes of what goes out and of what comes back, as shares of the whole gradient and of all
    weights.
    """

    up: float
    down: float


def parse_option(text: str) -> Strategy:
    """What ``--strategy`` names. Raises PlanError naming what does not fit."""
    try:
        return Strategy.from_text(text)
    except ValueError as error:
        raise PlanError(f"--strategy {text}: {error}") from error


def traffic(strategy: Strategy, step: StepProfile, workers: int) -> TrafficShare:
    """What of a model goes to a parameter server and back in a step of so many workers; or to one
    peer, and from it.

    workers: of the largest cluster, for a smaller one is sent back no more than that.
    """
    made = strategy.compressor.build(variables(step))
    whole = bytes_of(DENSE, made.size, made.size)
    if strategy.through_server:
        return TrafficShare(made.traffic_bytes() / whole, made.answer_bytes(workers) / whole)
    share = 1.0 if made.by_link else made.traffic_bytes() / whole
    return TrafficShare(share, share)


def notes(strategy: Strategy, step: StepProfile) -> list[str]:
    """What the operator must know of the bytes."""
    if step.layers or strategy.compressor == PARAMETER_SERVER.compressor:
        return []
    return ["the profile does not tell the model's layers, which what is sent depends on; profile again with --fresh"]


def variables(step: StepProfile) -> tuple[Variable, ...]:
    """The layers of a profiled model, nameless; one where an older profile does not tell them."""
    places, start = [], 0
    for index, size in enumerate(step.layers or (step.parameters,)):
        places.append(Variable(str(index), (size,), start, size))
        start += size
    return tuple(places)
