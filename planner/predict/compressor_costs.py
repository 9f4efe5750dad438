"""Compressor costs are the bytes of a strategy's messages and the processor seconds to code them.

Processor seconds are profiled on every device, by kind of compressor at its defaults.
"""

import math
from typing import NamedTuple

from backends.frameworks.base import Variable, consecutive
from backends.strategies.message import DENSE, bytes_of
from backends.strategies.strategy import Strategy
from planner.predict import update_costs
from profilers.records.steps import StepProfile
from profilers.stats import mean

#: Elements of the smallest variable that is taken for a matrix.
SMALLEST_MATRIX = 1024


class MessageBytes(NamedTuple):
    """Bytes of the messages of a model.

    up, down: of one exchange, to the server and back; among peers, of one message to and from one.
    weights: of all weights and state.
    """

    up: int
    down: int
    weights: int


def message_bytes(strategy: Strategy, step: StepProfile, workers: int) -> MessageBytes:
    """Bytes of a model's messages. workers: of the largest cluster, whose answers are largest."""
    made = strategy.compressor.build(_variables(step, strategy.compressor.name == "power-sgd"))
    whole = bytes_of(DENSE, made.size, made.size)
    up = down = made.traffic_bytes() / whole
    state_bytes = 0  # peers keep theirs
    if strategy.through_server:
        down, state_bytes = made.answer_bytes(workers) / whole, step.state_bytes
    elif made.by_link:
        up = down = 1.0
    return MessageBytes(
        up=round(up * step.gradient_bytes) + state_bytes,
        down=round(down * step.parameter_bytes),
        weights=step.parameter_bytes + step.state_bytes,
    )


def encode_s(strategy: Strategy, step: StepProfile) -> float:
    """Seconds to choose what one message holds."""
    return mean(step.compressors[strategy.compressor.name].send_s.values)


def add_s(strategy: Strategy, step: StepProfile) -> float:
    """Seconds to add a message to what there is."""
    return mean(step.compressors[strategy.compressor.name].add_s.values)


def service_s(strategy: Strategy, step: StepProfile) -> float:
    """Seconds of a server's update with one gradient; of a peer's, after it has added up its own.

    A server adds compressed messages to its momentum first, or to the weights themselves where
    workers have momentum of their own, because they keep a residual. Differences are added to what
    it has of the worker's gradient, with the whole of which it then makes its update.
    """
    whole_s = mean(update_costs.service_s(strategy.shared_kind, step).values)
    if not strategy.through_server:
        return whole_s + mean(step.compressors[DENSE].add_s.values)
    if strategy.compressor.name == DENSE:
        return whole_s
    chosen = strategy.compressor
    adds_only = chosen.keeps_residual and not chosen.sends_differences
    return add_s(strategy, step) + (0.0 if adds_only else whole_s)


def _variables(step: StepProfile, as_matrices: bool = False) -> tuple[Variable, ...]:
    """The layers of a profiled model, nameless.

    as_matrices: as square as can be, for a profile does not tell their shapes; small ones are
        biases and scales.
    """
    shapes = (_square(size) if as_matrices and size >= SMALLEST_MATRIX else (size,) for size in step.layers)
    return consecutive(("", shape) for shape in shapes)


def _square(size: int) -> tuple[int, int]:
    rows = math.isqrt(size)
    return rows, size // rows
