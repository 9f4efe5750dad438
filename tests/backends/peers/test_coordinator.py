"""The coordinator of peers refuses what does not fit its run, and goes on without the sender."""

import numpy as np
import pytest

from backends.frameworks.base import layout_of
from backends.frameworks.layout import Layout, Variable
from backends.protocol.events import Dropped, Refused
from backends.protocol.frames import Finish, PeerHello, PeerStep, PeerStepDone, WeightsOffer, WeightsReply
from backends.training.array_transfer import receive_named, send_named
from tests.backends.fakes import Softmax
from tests.backends.peer_run import PeerRun

LAYOUT = layout_of(Softmax())
HELLO = PeerHello(LAYOUT, "127.0.0.1", 7000, "mine")
OTHER = Layout((Variable("other", (2,), 0, 2),), ())


@pytest.mark.parametrize(
    ("hello", "event", "reason"),
    [
        (HELLO._replace(layout=None), Refused, "peer_hello.layout: expected an object"),
        (HELLO._replace(layout=OTHER), Dropped, "its model is not the run's"),
        (HELLO._replace(port="high"), Refused, "peer_hello.port: expected a whole number"),
    ],
    ids=["no layout", "another model", "no port"],
)
def test_a_peer_that_does_not_introduce_itself_properly_is_sent_away_with_the_reason(tmp_path, hello, event, reason):
    run = PeerRun(tmp_path, "allreduce", 8, 2)
    first = run.connect("first")
    first.send(HELLO)
    receive_named(first, LAYOUT, 2)
    run.connect("odd").send(hello)
    run.await_event(event)
    assert reason in run.emitted(event)[0].reason
    first.abort()  # the end of the run would wait for its state
    run.stopping.set()
    run.account()


def test_an_asynchronous_peer_need_not_answer_before_it_has_its_next_order(tmp_path):
    run = PeerRun(tmp_path, "ako", 8, 1)
    peer = run.connect("only")
    peer.send(HELLO)
    receive_named(peer, LAYOUT, 2)
    assert peer.receive(PeerStep).step == 0
    peer.send(PeerStepDone(1.0, 4, 0.1, 0, False))
    assert [peer.receive(PeerStep).step for _ in range(2)] == [1, 2]
    for answered in (1, 2):
        peer.send(PeerStepDone(1.0, 4, 0.1, 0, False))
        assert peer.receive(PeerStep).step == answered + 2
    peer.abort()
    run.stopping.set()
    assert run.account().workers["only"].steps == 3


@pytest.mark.parametrize("shapes", [(3,), (39, 3), (39, 39, 2), ()], ids=str)
def test_a_peer_that_hands_over_weights_of_another_model_is_dropped(tmp_path, shapes):
    run = PeerRun(tmp_path, "allreduce", 8, 2)
    peer = run.connect("odd")
    peer.send(HELLO)
    receive_named(peer, LAYOUT, 2)
    run.stopping.set()
    assert peer.receive(Finish) == Finish(hand_over=True)
    peer.send(WeightsOffer("mine"))
    assert peer.receive(WeightsReply).wanted
    send_named(peer, {"own": tuple(np.zeros(shape, np.float32) for shape in shapes)})
    assert run.account().reason == "stopped"
    assert not (tmp_path / "checkpoint.npz").exists()
