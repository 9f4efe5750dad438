"""Frozen parameters cross the network when a member joins, and not in steps or evaluations."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from backends.frameworks.layout import Variable
from backends.frameworks.optimizer import OptimizerSettings
from backends.training import checkpoint
from tests.backends.fakes import Softmax, run_spec
from tests.backends.peer_run import PeerRun
from tests.backends.server_run import ServerRun, WorkerThread
from tests.installed import ROOT, computes_with

FROZEN = 50_000
STEPS = 20


class Adapted(Softmax):
    """Softmax regression with so many frozen parameters, which are first in its state."""

    frozen = FROZEN
    state_variables = (Variable("base", (FROZEN,), 0, FROZEN), Variable("norm/mean", (2,), FROZEN, 2))

    def __init__(self, seed: int = 0, base: float = 1.0) -> None:
        super().__init__(seed)
        mean, self.state = self.state, np.full(FROZEN + 2, base, np.float32)
        self.state[FROZEN:] = mean

    def gradient(self, *given: object, **named: object) -> float:
        whole = self.state
        self.state = whole[FROZEN:]  # a view, which steps change
        try:
            return super().gradient(*given, **named)
        finally:
            self.state = whole


def require_saved(folder: Path) -> None:
    """The checkpoint has the base and running statistics, as one array for each."""
    saved = checkpoint.read(str(folder / "checkpoint.npz"))
    assert (saved.state[:FROZEN] == 1.0).all() and (saved.state[FROZEN:] > 0.1).all()
    assert [each.name for each in saved.layout.state_variables] == ["base", "norm/mean"]


def test_a_server_and_its_workers_send_only_what_steps_change(tmp_path: Path) -> None:
    run = ServerRun(run_spec(tmp_path, STEPS, evaluate_every=5))
    first = WorkerThread(run, "a", Adapted())
    first.end()
    assert run.account().finished
    one_way = 4 * FROZEN  # the initial weights of the first worker
    assert one_way < first.bytes < one_way + 40_000
    require_saved(tmp_path)


def test_a_worker_that_joins_a_resumed_run_gets_the_frozen_part_of_the_checkpoint(tmp_path: Path) -> None:
    for resume, base in ((None, 1.0), (str(tmp_path / "checkpoint.npz"), 7.0)):
        run = ServerRun(run_spec(tmp_path, STEPS if resume is None else 2 * STEPS, resume=resume))
        worker = WorkerThread(run, "a", Adapted(base=base))
        worker.end()
        assert run.account().finished
    assert (worker.replica.state[:FROZEN] == 1.0).all()
    require_saved(tmp_path)


@pytest.mark.parametrize("strategy", ["allreduce", "diloco"])
def test_peers_send_one_another_only_what_steps_change(tmp_path: Path, strategy: str) -> None:
    run = PeerRun(tmp_path, strategy, STEPS, 2)
    peers = [run.start(seed, replica=Adapted()) for seed in range(2)]
    for peer in peers:
        peer.end()
    assert run.account().finished
    assert all(peer.mailbox.sent_bytes < 4 * FROZEN for peer in peers)
    require_saved(tmp_path)


@pytest.mark.parametrize("with_peft", [pytest.param(each, marks=computes_with("torch")) for each in (False, True)])
def test_adapters_are_all_that_has_gradients(monkeypatch: pytest.MonkeyPatch, with_peft: bool) -> None:
    from backends.frameworks.base import framework
    from backends.jobs import user_job

    monkeypatch.syspath_prepend(str(ROOT / "examples/jobs"))
    name = "regression" if with_peft else "lora"
    made = runpy.run_path(str(ROOT / f"examples/jobs/{name}.py"))["job"]()
    if with_peft:
        peft = pytest.importorskip("peft")
        made.model = peft.get_peft_model(made.model, peft.LoraConfig(r=4, target_modules=["0", "2", "4"]))
    whole = sum(each.numel() for each in made.model.parameters())
    replica = framework("torch").replica(framework("torch").load_job(lambda: user_job.checked(made), 0, 1).job)
    assert replica.gradients.size == replica.weights.size == 4 * (10 + 64 + 64 + 64 + 64 + 1)
    assert replica.frozen == whole - replica.weights.size and replica.changing.size == 0
    before, batch = replica.state.copy(), tuple(each[:8] for each in made.train.tensors)
    first = replica.gradient(batch, rate=0.01)
    for _ in range(20):
        replica.update(OptimizerSettings(momentum=0.0))
        last = replica.gradient(batch, rate=0.01)
    assert last < first
    np.testing.assert_array_equal(replica.state, before)
    replica.keep_state()
    assert replica.kept_state().size == 0 and replica.whole_kept_state().size == replica.frozen
