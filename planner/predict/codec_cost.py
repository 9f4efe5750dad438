"""Codec costs are the processor seconds to encode a message and to add one.

They are profiled on every device, by kind of compressor at its defaults. Where an older profile
lacks them, encoding is taken to cost nothing, and adding as much as a server's update.
"""

from collections.abc import Iterable

from backends.strategies.option_text import FORMER_NAMES
from backends.strategies.strategy import Strategy
from profilers.records import CodecCost, StepProfile
from profilers.stats import mean

_WHOLE = "dense"


def encode_s(found: Strategy, step: StepProfile) -> float:
    """Seconds to choose what one message holds."""
    known = _coding(found, step)
    return mean(known.send_s.values) if known else 0.0


def add_s(found: Strategy, step: StepProfile) -> float:
    """Seconds to add a message to what there is."""
    known = _coding(found, step)
    return mean(known.add_s.values) if known else mean(step.service_s.values)


def service_s(found: Strategy, step: StepProfile) -> float:
    """Seconds of a server's update with one gradient; of a peer's own, with its own.

    A server adds messages that are no whole gradients to its momentum first, or to the weights
    themselves where workers have momentum of their own, because they keep something for later.
    """
    whole_s = mean(step.service_s.values)
    if not found.through_server or found.compressor.name == _WHOLE or _coding(found, step) is None:
        return whole_s
    return add_s(found, step) + (0.0 if found.compressor.keeps_residual else whole_s)


def notes(found: Strategy, steps: Iterable[StepProfile]) -> list[str]:
    """Notes for the operator on costs that the profile lacks."""
    if found.compressor.name == _WHOLE or all(_coding(found, step) for step in steps):
        return []
    return [f"the profile does not tell what {found.compressor.name} costs the processors; profile again with --fresh"]


def _coding(found: Strategy, step: StepProfile) -> CodecCost | None:
    """By the compressor's name; older profiles have former names."""
    today = {FORMER_NAMES.get(name, name): cost for name, cost in step.compressors.items()}
    return today.get(found.compressor.name)
