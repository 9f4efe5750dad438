"""Runs with a fixed seed come to the same weights, whatever is done to the code that hosts them.

Expected are the first trained weight, the sum of all squares, and the last loss.
"""

import threading
from typing import Any

import numpy as np
import pytest

from backends.frameworks.optimizer import OptimizerSettings
from backends.hosting.single_device import SingleDevice
from backends.protocol.events import Joined
from backends.strategies.strategy import Strategy
from backends.training import checkpoint
from backends.training.lr_schedule import RateSchedule
from tests.backends.fakes import BATCH, TEST, DrawnBatches, Softmax, run_spec
from tests.backends.peer_run import PeerRun
from tests.backends.rank_run import RankThreads
from tests.backends.server_run import ServerRun, WorkerThread

ALONE = (0.564845, 6.246387, 0.446846)
SERVED = (0.324380, 2.315749, 0.649027)
PEERS = {"allreduce": (0.276789, 1.842380, 0.684641), "diloco:local=steps:every=5": (0.464996, 4.586071, 0.491022)}
RANKS = (0.208189, 1.202564, 0.779103)


def figures(saved: checkpoint.Checkpoint) -> tuple[float, float, float]:
    loss: Any = saved.meta["evaluations"][-1]["loss"]
    return float(saved.weights[0]), float(np.square(saved.weights).sum()), float(loss)


def test_of_one_device(tmp_path):
    spec = run_spec(tmp_path, 20, evaluate_every=10)
    SingleDevice(spec, Softmax(), DrawnBatches(), lambda _: None).train(TEST, lambda: False)
    assert figures(checkpoint.read(spec.checkpoints.path)) == pytest.approx(ALONE, rel=1e-4)


def test_of_a_synchronous_server(tmp_path):
    how = Strategy.from_text("parameter-server:sync=synchronous")
    run = ServerRun(run_spec(tmp_path, 20, members=2, strategy=how, schedule=RateSchedule()))
    together = threading.Event()
    for seed, name in enumerate("ab", 1):
        WorkerThread(run, name, Softmax(), DrawnBatches(seed=seed, before=together.wait))
    run.await_event(Joined, 2)
    together.set()
    assert figures(run.saved()) == pytest.approx(SERVED, rel=1e-4)


@pytest.mark.parametrize("strategy", ["allreduce", "diloco:local=steps:every=5"])
def test_of_peers(tmp_path, strategy):
    run = PeerRun(tmp_path, strategy, 40, 2, momentum=0.5, evaluate_every=20)
    for thread in run.start_all():
        thread.end()
    assert figures(run.saved()) == pytest.approx(PEERS[strategy], rel=1e-4)


def test_of_ranks(tmp_path):
    spec = run_spec(tmp_path, 20, optimizer=OptimizerSettings(0.1, 0.9, 0.001), evaluate_every=10)
    RankThreads(spec, (BATCH, 2 * BATCH)).end()
    assert figures(checkpoint.read(spec.checkpoints.path)) == pytest.approx(RANKS, rel=1e-4)
