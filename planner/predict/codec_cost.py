"""What messages cost the devices' processors beside being carried: choosing what they hold, and taking them in.

Measured on every device, by kind of sender at its defaults (backends/coding.py). Profiles of before that was measured
do not tell: there to choose is taken to cost nothing, and to take in as much as a server's update.
"""

from collections.abc import Iterable

from backends.strategies.compressors.registry import keeps_residual
from backends.strategies.presets import Strategy
from planner.predict.strategy import through_server
from profilers.records import CodecCost, StepProfile
from profilers.stats import mean

_WHOLE = "everything"


def encode_s(found: Strategy, step: StepProfile) -> float:
    """Seconds of choosing what one message holds."""
    known = _coding(found, step)
    return mean(known.send_s.values) if known else 0.0


def add_s(found: Strategy, step: StepProfile) -> float:
    """Seconds of adding a message to what there is."""
    known = _coding(found, step)
    return mean(known.add_s.values) if known else mean(step.service_s.values)


def service_s(found: Strategy, step: StepProfile) -> float:
    """Seconds of a server's update with one gradient; of a peer's own, with its own.

    A server adds messages that are no whole gradients to its momentum first, or to the weights themselves where workers
    have momentum of their own, because they keep something for later.
    """
    whole_s = mean(step.service_s.values)
    if not through_server(found) or _kind(found) == _WHOLE or _coding(found, step) is None:
        return whole_s
    return add_s(found, step) + (0.0 if keeps_residual(found.sender) else whole_s)


def notes(found: Strategy, steps: Iterable[StepProfile]) -> list[str]:
    """What the operator must know of them."""
    if _kind(found) == _WHOLE or all(_coding(found, step) for step in steps):
        return []
    return [f"the profile does not tell what {_kind(found)} costs the processors; profile again with --fresh"]


def _kind(found: Strategy) -> str:
    return found.sender.partition(":")[0]


def _coding(found: Strategy, step: StepProfile) -> CodecCost | None:
    return step.senders.get(_kind(found))
