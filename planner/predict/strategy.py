"""How the workers of a run exchange what they learn, as far as planning needs to know: parsed, checked, weighed."""

import functools
from typing import NamedTuple

from backends.frameworks.base import Variable
from backends.strategies import presets, synchronisation
from backends.strategies.compressors import registry
from backends.strategies.message import DENSE, bytes_of
from backends.strategies.presets import Strategy
from backends.strategies.topologies import registry as topologies
from planner.errors import PlanError
from profilers.records import StepProfile

#: What a plan has that names none: gradients to a parameter server, which waits for nobody.
DEFAULT = "parameter-server"


class TrafficShare(NamedTuple):
    """Bytes of what goes out and of what comes back, as shares of the whole gradient and of all weights."""

    up: float
    down: float


@functools.lru_cache(maxsize=64)
def strategy(text: str) -> Strategy:
    """The strategy of a name, its options too. Raises PlanError naming what does not fit."""
    try:
        found = presets.strategy(text)
        registry.keeps_residual(found.sender)
        synchronisation.parse(found.gate)
        topologies.parse(found.topology)
    except ValueError as error:
        raise PlanError(f"--strategy {text}: {error}") from error
    return found


@functools.lru_cache(maxsize=64)
def gate(text: str) -> synchronisation.SyncPolicy:
    """When the workers of a strategy go on. Raises PlanError as ``strategy`` does."""
    return synchronisation.parse(strategy(text).gate)


def through_server(found: Strategy) -> bool:
    """Whether workers exchange with a parameter server, and not among themselves."""
    return found.topology.partition(":")[0] == "server"


def holds_up(found: Strategy, workers: int) -> bool:
    """Whether all wait while one of so many workers evaluates."""
    return workers == 1 or synchronisation.parse(found.gate).waits_for(workers) > 1


@functools.lru_cache(maxsize=64)
def fits_links(text: str) -> bool:
    """Whether a strategy sends between peers what each link can take in the time of a step."""
    any_layer = (Variable("any", (1,), 0, 1),)
    return registry.compressor(strategy(text).sender, any_layer).by_link


def traffic(found: Strategy, step: StepProfile, workers: int) -> TrafficShare:
    """What of a model goes to a parameter server and back in a step of so many workers; or to one peer, and from it.

    workers: of the largest cluster, for a smaller one is sent back no more than that.
    """
    made = registry.compressor(found.sender, variables(step))
    whole = bytes_of(DENSE, made.size, made.size)
    if through_server(found):
        return TrafficShare(made.traffic_bytes() / whole, made.answer_bytes(workers) / whole)
    share = 1.0 if made.by_link else made.traffic_bytes() / whole
    return TrafficShare(share, share)


def notes(found: Strategy, step: StepProfile) -> list[str]:
    """What the operator must know of the bytes."""
    if step.layers or presets.PRESETS[DEFAULT].sender == found.sender:
        return []
    return ["the profile does not tell the model's layers, which what is sent depends on; profile again with --fresh"]


def variables(step: StepProfile) -> tuple[Variable, ...]:
    """The layers of a profiled model, nameless; one where an older profile does not tell them."""
    places, start = [], 0
    for index, size in enumerate(step.layers or (step.parameters,)):
        places.append(Variable(str(index), (size,), start, size))
        start += size
    return tuple(places)
