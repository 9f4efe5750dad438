"""The coordinator of peers refuses what does not fit its run, and goes on without the sender."""

import numpy as np
import pytest

from backends.network import framing
from backends.protocol.events import Dropped
from backends.training.array_transfer import describe_named, flatten
from backends.training.layout import layout_of
from tests.backends.fakes import Softmax
from tests.backends.peer_run import PeerRun

LAYOUT = layout_of(Softmax()).encode()
HELLO = {"layout": LAYOUT, "address": "127.0.0.1", "port": 7000, "digest": "mine"}


def reasons(run):
    return [event.reason for event in run.emitted(Dropped)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"layout": None}, "not the layout of a model"),
        ({"layout": [[["other", [2], 0, 2]], []]}, "its model is not the run's"),
        ({"port": "high"}, "port"),
    ],
    ids=["no layout", "another model", "no port"],
)
def test_a_peer_that_does_not_introduce_itself_properly_is_dropped_with_the_reason(tmp_path, changes, reason):
    run = PeerRun(tmp_path, "allreduce", 8, 2)
    first = run.connect("first")
    first.send(HELLO)
    first.receive()
    odd = run.connect("odd")
    odd.send({**HELLO, **changes})
    run.await_event(Dropped)
    assert reason in reasons(run)[0]
    first.abort()  # the end of the run would wait for its state
    run.stopping.set()
    run.account()


@pytest.mark.parametrize("shapes", [(3,), (39, 3), (39, 39, 2), ()], ids=str)
def test_a_peer_that_hands_over_weights_of_another_model_is_dropped(tmp_path, shapes):
    run = PeerRun(tmp_path, "allreduce", 8, 2)
    peer = run.connect("odd")
    peer.send(HELLO)
    peer.receive()
    run.stopping.set()
    assert peer.receive().meta == {"kind": "finish", "hand_over": True}
    peer.send({"digest": "mine"})
    assert peer.receive().meta["weights"]
    state = {"own": tuple(np.zeros(shape, np.float32) for shape in shapes)}
    peer.send({"arrays": describe_named(state)}, framing.as_bytes(flatten(state)))
    assert run.account().reason == "stopped"
    assert not (tmp_path / "checkpoint.npz").exists()
