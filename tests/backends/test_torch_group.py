"""Replicas of torch average their gradients over torch.distributed, in processes of their own."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from backends.models.layers import Model
from backends.network import framing
from backends.training.step import gradient
from tests.backends.rank_run import drawn
from tests.backends.replicas import PLAIN, WIDE, small_replica
from tests.backends.torch_member import learning
from tests.installed import computes_with
from tests.running import HANG_S, ROOT

pytestmark = computes_with("torch")
STEPS = 6


def members(folder: Path, batches: tuple[int, ...], **given):
    """Runs one process a member to its end: their exit codes, last words and what they left."""
    with framing.listen("127.0.0.1") as free:
        port = free.getsockname()[1]
    started = []
    for rank in range(len(batches)):
        order = {"rank": rank, "batches": batches, "port": port, "steps": STEPS, "left": f"{folder}/{rank}.npz"}
        command = [sys.executable, "-m", "tests.backends.torch_member", json.dumps({**order, **given})]
        started.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True))
    said = [process.communicate(timeout=HANG_S)[0] for process in started]
    left = [np.load(path) for path in sorted(folder.glob("*.npz"))]
    return [process.returncode for process in started], said, left


def learnt_alone(
    batches: tuple[int, ...], clip_norm: float | None = None, model: Model = PLAIN, kind: str = "sgd"
) -> np.ndarray:
    """The weights of one replica whose batches are those of all members together."""
    learnt = learning(kind, clip_norm)
    replica, sources = small_replica("torch", model), [drawn(rank, size) for rank, size in enumerate(batches)]
    for _ in range(STEPS):
        together = tuple(map(np.concatenate, zip(*(next(each) for each in sources), strict=True)))
        gradient(replica, together, learnt.in_gradients)
        replica.update(learnt)
    replica.fetch()
    return replica.weights


@pytest.mark.parametrize("batches", [pytest.param((8, 8), marks=pytest.mark.e2e), (3, 13)])
def test_members_come_to_what_one_replica_learns_from_all_samples(tmp_path, batches):
    codes, _, left = members(tmp_path, batches)
    assert codes == [0, 0]
    np.testing.assert_array_equal(left[0]["weights"], left[1]["weights"])
    np.testing.assert_allclose(left[0]["weights"], learnt_alone(batches), rtol=1e-4, atol=1e-5)
    for one in left:
        assert [row[0] for row in one["rows"]] == [0, 1] and [row[1] for row in one["rows"]] == [1, 1]
        assert (one["exchange_s"] > 0).all() and (one["hidden_cpu_s"] >= 0).all()


@pytest.mark.e2e
def test_all_begin_with_the_weights_of_the_first(tmp_path):
    codes, _, left = members(tmp_path, (8, 8), steps=0)
    assert codes == [0, 0]
    np.testing.assert_array_equal(left[0]["weights"], left[1]["weights"])
    np.testing.assert_array_equal(left[0]["weights"], small_replica("torch").weights)


@pytest.mark.e2e
@pytest.mark.parametrize(("clip_norm", "checkpointing"), [(None, True), (0.5, False)])
def test_batches_in_parts_come_to_the_same_and_clipping_is_of_the_mean_gradient(tmp_path, clip_norm, checkpointing):
    """Also where blocks of the model are computed again in the backward pass."""
    codes, _, left = members(tmp_path, (3, 13), most=4, clip_norm=clip_norm, checkpointing=checkpointing)
    assert codes == [0, 0]
    np.testing.assert_array_equal(left[0]["weights"], left[1]["weights"])
    np.testing.assert_allclose(left[0]["weights"], learnt_alone((3, 13), clip_norm), rtol=1e-4, atol=1e-5)


@pytest.mark.e2e
def test_running_statistics_are_each_members_own_until_they_are_averaged(tmp_path):
    codes, _, left = members(tmp_path, (4, 12), model="normalised")
    assert codes == [0, 0]
    np.testing.assert_array_equal(left[0]["state"], left[1]["state"])
    np.testing.assert_array_equal(left[0]["weights"], left[1]["weights"])


@pytest.mark.e2e
@pytest.mark.parametrize(("hook", "within"), [("fp16", 1e-3), ("bf16", 1e-2), ("powersgd", 0.5)])
def test_torchs_own_hooks_send_less_and_keep_weights_equal(tmp_path, hook, within):
    codes, _, left = members(tmp_path, (4, 12), hook=hook)
    assert codes == [0, 0]
    np.testing.assert_array_equal(left[0]["weights"], left[1]["weights"])
    exact = learnt_alone((4, 12))
    assert 0 < np.linalg.norm(left[0]["weights"] - exact) < within * np.linalg.norm(exact)


@pytest.mark.e2e
def test_powersgd_of_several_buckets_does_not_wait_for_itself(tmp_path):
    """Its callbacks wait in gloo's two threads for exchanges that need one of them."""
    codes, _, left = members(tmp_path, (4, 4), hook="powersgd", model="wide", steps=40)
    assert codes == [0, 0]
    np.testing.assert_array_equal(left[0]["weights"], left[1]["weights"])


@pytest.mark.chaos
@pytest.mark.parametrize("steps", [0, 3])
def test_a_member_that_is_killed_ends_the_others_with_one_line(tmp_path, steps):
    """Also where the others are in their first exchange."""
    codes, said, _ = members(tmp_path, (8, 8, 8), leaves_after=steps)
    assert codes == [3, 3, -9]
    for line in said[:2]:
        assert line.startswith("the exchange with the other members broke off: ") and line.count("\n") == 1


@pytest.mark.e2e
def test_members_whose_shards_are_unequal_make_the_same_rounds_to_the_end(tmp_path):
    """Data are endless: the first passes over its 5 samples often, the other never sees all 90."""
    codes, _, left = members(tmp_path, (8, 8), shards=(5, 90))
    assert codes == [0, 0]
    assert [len(one["exchange_s"]) for one in left] == [STEPS, STEPS]
    np.testing.assert_array_equal(left[0]["weights"], left[1]["weights"])
    assert np.isfinite(left[0]["weights"]).all()


@pytest.mark.e2e
def test_a_torch_that_was_built_without_torch_distributed_is_named(monkeypatch):
    from backends import pytorch

    monkeypatch.setattr(pytorch.distributed, "is_available", lambda: False)
    with pytest.raises(ValueError, match="built without torch.distributed"):
        pytorch.require_process_group()


#: On one core, a thread that has ended a work is often held up by the one that waited for it, which
#: keeps the interpreter until it waits again.
GROUPS_OF_ONE = """
import functools, os, sys, threading
from backends import pytorch
from backends.frameworks.optimizer import GradientSettings
from backends.training.step import combine_parts
from tests.backends.replicas import batch_for, small_replica

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
sys.setswitchinterval(1000.0)
replica = small_replica("torch")
take = functools.partial(combine_parts, replica, batch_for(replica, 4), GradientSettings())

def measure():
    for _ in range(100):
        assert pytorch.group_cpu_s(replica, lambda: take) is not None

thread = threading.Thread(target=measure)
thread.start()
thread.join()
print("ended")
"""


@pytest.mark.e2e
def test_groups_of_one_end_however_often_they_are_made():
    """A thread of a group may need the interpreter to let go of the last work."""
    command = [sys.executable, "-c", GROUPS_OF_ONE]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


@pytest.mark.e2e
@pytest.mark.parametrize(("kind", "batches"), [("sgd", (8, 8)), ("sgd", (3, 13)), ("adamw", (3, 8, 5))])
def test_members_that_hold_shares_come_to_what_one_replica_learns_from_all_samples(tmp_path, kind, batches):
    """Of blocks that are gathered one by one, and of rows that members cannot share equally."""
    codes, _, left = members(tmp_path, batches, sharded=True, model="wide", optimizer=kind)
    assert codes == [0] * len(batches)
    np.testing.assert_allclose(left[0]["weights"], learnt_alone(batches, model=WIDE, kind=kind), rtol=1e-4, atol=1e-5)
    assert (left[0]["exchange_s"] > 0).all()


@pytest.mark.e2e
@pytest.mark.parametrize("given", [{"checkpointing": True}, {"most": 4, "clip_norm": 0.5}])
def test_shares_with_activation_checkpointing_or_unlike_numbers_of_parts_come_to_the_same(tmp_path, given):
    codes, _, left = members(tmp_path, (3, 13), sharded=True, model="wide", **given)
    assert codes == [0, 0]
    alone = learnt_alone((3, 13), given.get("clip_norm"), model=WIDE)
    np.testing.assert_allclose(left[0]["weights"], alone, rtol=1e-4, atol=1e-5)


@pytest.mark.e2e
def test_shares_of_a_block_that_are_used_outside_of_it_are_refused(tmp_path):
    codes, said, _ = members(tmp_path, (8, 8), sharded=True, model="wide", penalised=True)
    assert codes == [3, 3] and all("uses some of them outside of it" in line for line in said)


@pytest.mark.e2e
def test_two_train_by_shares_what_one_has_not_the_memory_for(tmp_path):
    """A replica with what AdamW keeps takes 240 MB, a share 120 MB and what it gathers."""
    given = {"model": "deep", "optimizer": "adamw", "limit": 210_000_000, "steps": 2}
    codes, _, left = members(tmp_path, (8,), **given)
    assert codes == [1] and not left
    codes, _, left = members(tmp_path, (8, 8), sharded=True, **given)
    assert codes == [0, 0]
    assert np.isfinite(left[0]["weights"]).all() and left[0]["weights"].size > 15_000_000


@pytest.mark.chaos
def test_a_member_with_shares_that_is_killed_ends_the_others_with_one_line(tmp_path):
    codes, said, _ = members(tmp_path, (8, 8, 8), leaves_after=3, sharded=True)
    assert codes == [3, 3, -9]
    for line in said[:2]:
        assert line.startswith("the exchange with the other members broke off: ") and line.count("\n") == 1
