"""Messages: their bytes, and the seconds to code them, to add them up and to make updates of them.

Seconds are profiled on every device, by kind of compressor at its defaults, and by optimizer.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from backends.frameworks.layout import Variable, consecutive
from backends.frameworks.optimizer import ADAM, ADAMW, DELAYED_NESTEROV, NESTEROV, SGD
from backends.strategies.engine import TORCH, Engine
from backends.strategies.message import DENSE, bytes_of
from backends.strategies.strategy import Strategy
from profilers.records.readings import Samples
from profilers.records.step_costs import UpdateCost
from profilers.records.steps import StepProfile
from profilers.stats import mean

#: Elements of the smallest variable that is taken for a matrix.
SMALLEST_MATRIX = 1024
#: Optimizers whose update is timed as that of another.
TIMED_AS = {ADAMW: ADAM, NESTEROV: SGD, DELAYED_NESTEROV: SGD}


class MessageBytes(NamedTuple):
    """Bytes of the messages of a model.

    up, down: of one exchange, to the server and back; among peers, of one message to and from one.
    weights: of all weights and state; state: of what steps change beside trained weights.
    """

    up: int
    down: int
    weights: int
    state: int


def message_bytes(strategy: Strategy, step: StepProfile, workers: int) -> MessageBytes:
    """Bytes of a model's messages. workers: of the largest cluster, whose answers are largest."""
    made = strategy.compressor.build(_variables(step, strategy.compressor.name == "power-sgd"))
    whole = bytes_of(DENSE, made.size, made.size)
    up = down = made.traffic_bytes() / whole
    state_bytes = 0  # peers keep theirs
    if strategy.through_server:
        down, state_bytes = made.answer_bytes(workers) / whole, step.size.state_bytes
    elif made.by_link:
        up = down = 1.0
    return MessageBytes(
        up=round(up * step.size.parameter_bytes) + state_bytes,
        down=round(down * step.size.parameter_bytes),
        weights=step.size.parameter_bytes + step.size.frozen_bytes + step.size.state_bytes,
        state=step.size.state_bytes,
    )


def encode_s(strategy: Strategy, step: StepProfile) -> float:
    """Seconds to choose what one message holds."""
    return mean(step.costs.compressors[strategy.compressor.name].send_s.values)


def add_s(strategy: Strategy, step: StepProfile) -> float:
    """Seconds to add a message to what there is."""
    return mean(step.costs.compressors[strategy.compressor.name].add_s.values)


def service_s(strategy: Strategy, step: StepProfile) -> float:
    """Seconds of a server's update with one gradient; of a peer's, after it has added up its own.

    A server adds compressed messages to its momentum first, or to the weights themselves where
    workers have momentum of their own, because they keep a residual. Differences are added to what
    it has of the worker's gradient, with the whole of which it then makes its update.
    """
    whole_s = mean(_of(strategy.shared_kind, step, step.costs.service_s, lambda cost: cost.service_s).values)
    if not strategy.through_server:
        return whole_s + mean(step.costs.compressors[DENSE].add_s.values)
    if strategy.compressor.name == DENSE:
        return whole_s
    chosen = strategy.compressor
    adds_only = chosen.keeps_residual and not chosen.sends_differences
    return add_s(strategy, step) + (0.0 if adds_only else whole_s)


def update_s(optimizer: str, step: StepProfile) -> float:
    """Seconds of an update of a device that trains alone, or of a rank of torch.distributed."""
    return mean(_of(optimizer, step, step.update_s, lambda cost: cost.update_s).values)


def clipping(step: StepProfile, engine: Engine) -> StepProfile:
    """The timing of a device that clips gradients.

    Workers and peers clip theirs before they send it; a device alone, and a rank of
    torch.distributed, before the update.
    """
    clip_s = mean(step.costs.clip_s.values)
    costs = step.costs
    others = {name: cost._replace(update_s=_longer(cost.update_s, clip_s)) for name, cost in costs.optimizers.items()}
    copy_s = step.copy_s if engine.name == TORCH else _longer(step.copy_s, clip_s)
    return step._replace(
        update_s=_longer(step.update_s, clip_s), copy_s=copy_s, costs=costs._replace(optimizers=others)
    )


def _of(optimizer: str, step: StepProfile, plain: Samples, part: Callable[[UpdateCost], Samples]) -> Samples:
    known = step.costs.optimizers.get(TIMED_AS.get(optimizer, optimizer))
    return plain if known is None else part(known)


def _longer(samples: Samples, by_s: float) -> Samples:
    return samples._replace(values=tuple(value + by_s for value in samples.values))


def _variables(step: StepProfile, as_matrices: bool) -> tuple[Variable, ...]:
    """The layers of a profiled model, nameless.

    as_matrices: as square as can be, for a profile does not tell their shapes; small ones are
        biases and scales.
    """
    shapes = (_square(size) if as_matrices and size >= SMALLEST_MATRIX else (size,) for size in step.size.layers)
    return consecutive(("", shape) for shape in shapes)


def _square(size: int) -> tuple[int, int]:
    rows = math.isqrt(size)
    return rows, size // rows
