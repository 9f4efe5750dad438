"""Steps of sharded runs by hand: 1 MB at 100 Mbit/s, of which a block has 0.4 MB.

A gradient takes 0.1 s, an update of all weights 10 ms. The block is gathered twice in a step, the
rest once, and all gradients are reduced: 2.4 MB, of which each of n members sends (n - 1) / n.
"""

import numpy as np
import pytest

from planner.predict.inputs import Inputs
from tests.planner.predict.kinds import test_ddp_cluster as ddp

BLOCKS = {"blocks": (100_000,)}
SECONDS = 2.4e6 / ddp.RATE


def sharded(*gradients_s: float, collectives: tuple[str, ...] = ("gloo", "fully_shard"), **step: object) -> Inputs:
    return ddp.costs(*gradients_s, engine="torch:shard=full", collectives=collectives, **{**BLOCKS, **step})


@pytest.mark.parametrize("members", [2, 3])
def test_over_gloo_all_that_is_exchanged_is_added_to_the_slowest_members_step(members: int) -> None:
    found = ddp.solved(sharded(*[0.05] * (members - 1), 0.1))
    np.testing.assert_allclose(found.cycle_s, 0.1 + 0.01 / members + (members - 1) / members * SECONDS, rtol=1e-6)
    np.testing.assert_allclose(found.network_bytes, (members - 1) / members * 2.4e6)


def test_a_batch_in_parts_gathers_and_reduces_for_each_of_them() -> None:
    found = ddp.solved(sharded(0.1, 0.1, micro_batch=8))  # of batches of 32
    np.testing.assert_allclose(found.cycle_s, 0.105 + 4 * SECONDS / 2, rtol=1e-6)


def test_what_is_frozen_is_gathered_and_not_reduced() -> None:
    half = {"parameters": 125_000, "parameter_bytes": 500_000, "frozen_bytes": 500_000, "layers": (125_000,)}
    found = ddp.solved(sharded(0.1, 0.1, **half))
    np.testing.assert_allclose(found.network_bytes, 1.4e6 / 2 + 0.5e6 / 2)


def test_nccl_exchanges_while_a_block_is_computed() -> None:
    quick = ddp.solved(sharded(1.0, 1.0, collectives=("gloo", "nccl", "fully_shard")))
    np.testing.assert_allclose(quick.cycle_s, 1.005, rtol=1e-6)
    slow = ddp.solved(sharded(0.003, 0.003, collectives=("gloo", "nccl", "fully_shard")))
    assert (slow.cycle_s >= SECONDS / 2).all() and (slow.cycle_s < 0.008 + 1.2 * SECONDS / 2).all()


def test_a_sharded_run_is_slower_than_one_of_whole_replicas_and_sends_more() -> None:
    whole, parts = ddp.solved(ddp.costs(0.1, 0.1)), ddp.solved(sharded(0.1, 0.1))
    assert (parts.cycle_s > whole.cycle_s).all() and (parts.network_bytes > whole.network_bytes).all()
