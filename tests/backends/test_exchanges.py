"""Every part that a strategy can name is there."""

from backends.exchanges.registry import MERGES
from backends.pacing import PACINGS
from backends.strategies import gates, presets, registry, topologies


def test_what_can_be_named_can_be_made() -> None:
    assert set(presets.SENDERS) == set(registry.SENDERS)
    assert set(presets.TOPOLOGIES) == set(topologies.TOPOLOGIES)
    assert set(presets.GATES) == set(gates.GATES)
    assert set(presets.BATCHINGS) == set(PACINGS)
    assert set(presets.MERGES) == set(MERGES)
