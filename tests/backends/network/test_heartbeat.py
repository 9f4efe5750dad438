"""Heartbeats tell both ends of a connection that the other is alive, or lost."""

import queue
from concurrent.futures import ThreadPoolExecutor

import pytest

from backends.network import framing, heartbeat
from backends.network.heartbeat import HeartbeatSender, answer_heartbeats
from backends.protocol.frames import Heartbeat, HeartbeatAnswer, HeartbeatHello
from planner.agents.certificates import Authority
from tests.running import HANG_S

#: Heartbeats come every fifth of it.
LIMIT_S = 0.5


@pytest.fixture
def ends():
    """The member's connection and the host's end of it."""
    authority = Authority()
    member_tls = framing.context(authority.identity("nano"), server_side=False)
    host_tls = framing.context(authority.identity(framing.SERVER), server_side=True)
    with framing.listen("127.0.0.1") as listener, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(lambda: framing.accept(listener.accept()[0], host_tls, HANG_S))
        member = framing.connect("127.0.0.1", listener.getsockname()[1], member_tls, HANG_S)
        host = accepted.result()
    yield member, host
    member.close()
    host.close()


def test_a_member_introduces_its_heartbeats_and_learns_the_epoch_from_every_answer(ends):
    member, host = ends
    lost, epochs = queue.Queue(), queue.Queue()
    sender = HeartbeatSender(member, LIMIT_S, lost.put, epochs.put)
    member.settimeout(HANG_S)  # however busy the machine is
    host.receive(HeartbeatHello)
    for epoch in (3, 4):
        host.receive(Heartbeat)
        host.send(HeartbeatAnswer(epoch))
        assert epochs.get(timeout=HANG_S) == epoch
    sender.close()
    assert lost.empty()


@pytest.mark.parametrize("gone", [False, True], ids=["silent", "gone"])
def test_a_member_is_told_of_a_host_that_answers_no_more(ends, gone):
    member, host = ends
    lost = queue.Queue()
    HeartbeatSender(member, LIMIT_S, lost.put)
    host.receive(HeartbeatHello)
    if gone:
        host.close()
    assert framing.SERVER in lost.get(timeout=HANG_S)


def test_a_member_that_ends_its_heartbeats_closes_the_connection_and_has_lost_nobody(ends):
    member, host = ends
    lost = queue.Queue()
    HeartbeatSender(member, LIMIT_S, lost.put).close()
    host.receive(HeartbeatHello)
    with pytest.raises(framing.WireError, match="nano closed the connection"):
        host.receive(Heartbeat)
    assert lost.empty()


def test_heartbeats_are_frequent_however_long_a_silence_may_be(ends, monkeypatch):
    monkeypatch.setattr(heartbeat, "MOST_INTERVAL_S", 0.01)
    member, host = ends
    HeartbeatSender(member, 5 * HANG_S, lambda _: None)
    host.settimeout(HANG_S / 2)
    host.receive(HeartbeatHello)
    host.receive(Heartbeat)


def test_a_host_answers_with_the_epoch_of_the_member_until_the_connection_ends(ends):
    member, host = ends
    epochs = {"nano": 7}
    with ThreadPoolExecutor(1) as pool:
        answering = pool.submit(answer_heartbeats, host, epochs.__getitem__)
        for epoch in (7, 8):
            epochs["nano"] = epoch
            member.send(Heartbeat())
            assert member.receive(HeartbeatAnswer).epoch == epoch
        member.close()
        answering.result(HANG_S)
