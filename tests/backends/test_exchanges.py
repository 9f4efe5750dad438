"""Every part that a strategy can name is there."""

from backends.peers.exchanges.registry import MERGES
from backends.strategies import presets, synchronisation
from backends.strategies.compressors import registry
from backends.strategies.message import WHOLE
from backends.strategies.topologies import registry as topologies
from backends.training.batch_size import BATCH_POLICIES


def test_what_can_be_named_can_be_made() -> None:
    assert set(presets.SENDERS) == set(registry.COMPRESSORS)
    assert set(presets.TOPOLOGIES) == set(topologies.TOPOLOGIES)
    assert set(presets.GATES) == set(synchronisation.SYNC_POLICIES)
    assert set(presets.BATCHINGS) == set(BATCH_POLICIES)
    assert set(presets.MERGES) == set(MERGES)


def test_what_leaves_nothing_out_goes_where_sums_and_weights_travel() -> None:
    for name in ("ring", "groups", "random"):
        fitting, _ = presets.FITS["topology", name]["sender"]
        assert set(fitting) == set(WHOLE)
