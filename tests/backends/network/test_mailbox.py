"""Messages between peers, over real sockets."""

import itertools
import time

import numpy as np
import pytest

from backends.network import framing
from backends.network.mailbox import Interrupted, Mailbox
from backends.protocol.frames import HeartbeatAnswer, MailboxHello
from backends.strategies.message import dense
from planner.agents.certificates import Authority
from tests.running import until

SIZE = 1000


@pytest.fixture
def pair():
    authority = Authority()
    made, addresses = {}, {}
    for name in ("a", "b"):
        listener = framing.listen("127.0.0.1")
        addresses[name] = listener.getsockname()
        made[name] = Mailbox(name, authority.identity(name, listens=True), listener, SIZE, 5.0, lambda _: None)
    for links in made.values():
        links.begin(1, addresses)
    yield made["a"], made["b"], addresses
    for links in made.values():
        links.close()


def values(number, size=SIZE):
    return dense(np.full(size, number, np.float32))


def go_on_sending(mailbox):
    steps = itertools.count(1)

    def send():
        step = next(steps)
        mailbox.send("b", step, values(step))
        mailbox.flush()

    until(send, lambda: "it is not interrupted")


def test_messages_arrive_with_what_is_said_beside_them(pair):
    a, b, _ = pair
    a.send("b", 3, values(7), kind="weights", batch=16)
    envelope = b.next("a", 3, "weights")
    assert (envelope.sender, envelope.head.step, envelope.head.batch) == ("a", 3, 16)
    np.testing.assert_array_equal(envelope.message.arrays[0], 7)
    a.flush()
    assert a.sent_bytes > 4 * SIZE


def test_envelopes_come_by_step_and_sender_and_others_stay(pair):
    a, b, _ = pair
    for step in (1, 2, 3):
        a.send("b", step, values(step))
    taken = b.take(lambda envelope: envelope.head.step < 3, 2)
    assert [envelope.head.step for envelope in taken] == [1, 2]
    assert [envelope.head.step for envelope in b.take(lambda _: True, 1)] == [3]


def test_who_waits_in_an_epoch_that_is_over_is_interrupted(pair):
    a, _, addresses = pair
    a.call(2)
    with pytest.raises(Interrupted):
        a.next("b", 0, "weights")
    a.begin(2, addresses)
    assert a.take(lambda _: True, 0) == []


def test_what_is_left_of_an_earlier_epoch_is_forgotten_and_a_later_one_is_kept(pair):
    a, b, addresses = pair
    a.send("b", 0, values(1))
    until(lambda: b._envelopes, lambda: "nothing came")
    a.begin(2, addresses)
    a.send("b", 0, values(2))
    until(lambda: len(b._envelopes) == 2, lambda: "nothing came")
    b.begin(2, addresses)
    (envelope,) = b.take(lambda _: True, 1)
    assert envelope.message.arrays[0][0] == 2


@pytest.mark.parametrize("error", [None, Interrupted])
def test_who_asks_before_one_has_begun_the_epoch_is_answered_when_it_begins(pair, error):
    a, b, addresses = pair
    asked = []

    def handle(envelope):
        asked.append(envelope.sender)
        if error is not None:
            raise error

    b.handle = handle
    a.begin(2, addresses)
    a.send("b", 0, values(1), asks=True)
    until(lambda: b._envelopes, lambda: "nothing came")
    assert asked == []
    b.begin(2, addresses)
    assert asked == ["a"]


def test_one_that_is_not_there_interrupts_who_sends_to_it(pair):
    a, b, _ = pair
    b.close()
    a.send("b", 0, values(1))
    with pytest.raises(Interrupted):
        go_on_sending(a)


def test_a_peer_that_does_not_take_what_comes_holds_its_sender_back(pair):
    a, b, addresses = pair
    sent = 0
    a.send("b", 0, values(0))
    send_queue = a._send_queue("b")
    until(lambda: send_queue.idle, lambda: "nothing went out")
    deadline = time.monotonic() + 0.3
    while time.monotonic() < deadline:
        if not send_queue.waiting:
            sent += 1
            a.send("b", sent, values(sent))
    assert len(b._envelopes) <= 6  # of four models
    assert b._waiting_bytes["a"] <= 4 * 4 * SIZE + 4096 + 8 * SIZE


def test_a_message_larger_than_the_model_is_not_taken(pair):
    a, b, _ = pair
    a.send("b", 0, values(1, SIZE + 1))
    with pytest.raises(Interrupted):
        go_on_sending(a)
    assert not [envelope for envelope in b._envelopes if envelope.head.step == 0]


def test_a_stranger_is_not_let_in(pair):
    _, _, addresses = pair
    stranger = framing.context(Authority().identity("a"), server_side=False)
    with pytest.raises(framing.WireError):
        connection = framing.connect(*addresses["b"], stranger, 5.0, "b")
        connection.send(MailboxHello())
        connection.receive(HeartbeatAnswer)


# -- samples that peers give to one another --------------------------------------------------------


def test_samples_arrive_before_what_is_sent_later_and_are_not_counted_as_traffic(pair):
    a, b, _ = pair
    arrived = []
    b.on_samples = arrived.append
    a.send_samples("b", 3, [b"one", b"another"])
    a.send("b", 3, values(7), kind="gradient")
    b.next("a", 3, "gradient")
    assert arrived == [[b"one", b"another"]]
    a.flush()
    with_samples = a.sent_bytes
    a.send("b", 4, values(7), kind="gradient")
    a.flush()
    assert a.sent_bytes == 2 * with_samples


def test_a_peer_that_wants_no_samples_takes_nothing_more_from_who_sends_them(pair):
    a, b, _ = pair
    a.send_samples("b", 0, [b"one"])
    with pytest.raises(Interrupted):
        go_on_sending(a)


def test_samples_that_cannot_be_sent_end_no_step(pair):
    a, b, _ = pair
    b.close()
    for step in range(5):
        a.send_samples("b", step, [b"one"])
        a.flush()
    assert a.sent_bytes == 0
