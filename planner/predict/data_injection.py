"""Data injection adds samples and bytes to what devices send; this is how many on average. Pure."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from backends.strategies.data_injection import InjectionSpec


class InjectedTraffic(NamedTuple):
    """What one device is expected to give and to receive.

    shared: own samples that it gives, each counted once; received: samples of others.
    sent_bytes, received_bytes: of samples; None where those of one are unknown.
    """

    shared: float
    received: float
    sent_bytes: float | None = None
    received_bytes: float | None = None


def injected_traffic(
    spec: InjectionSpec,
    batches: Mapping[str, int],
    steps: Mapping[str, float],
    sample_bytes: int | None,
    through_server: bool,
) -> dict[str, InjectedTraffic]:
    """By device, over these steps of each.

    A device gives in a share alpha of its steps, and what it gives then is
    ``InjectionSpec.shared``. A server is sent samples once, and forwards them to all others. What
    is on the way when a run ends, and what no batch has room for, is in these figures.

    batches: samples of each device's step.
    steps: of each device, or its rounds of local steps, of which only the first step gives.
    """
    others = len(batches) - 1
    shared = {
        name: spec.alpha * steps[name] * spec.shared(batch, len(batches)) if others else 0.0
        for name, batch in batches.items()
    }
    total = math.fsum(shared.values())
    found = {name: InjectedTraffic(given, total - given) for name, given in shared.items()}
    if sample_bytes is None:
        return found
    copies = 1 if through_server else others
    return {
        name: each._replace(sent_bytes=copies * sample_bytes * each.shared, received_bytes=sample_bytes * each.received)
        for name, each in found.items()
    }
