"""Epochs of peers, in one thread: a peer that would have to wait is sent home instead."""

import pytest

from backends.hosting.step_queue import StepCounter
from backends.network.mailbox import RUN_OVER
from backends.peers.epochs import EpochScheduler, PeerWorkItem
from backends.protocol.frames import EVALUATE, FINISH, GIVE, SAVE, STEP, TAKE
from backends.strategies.synchronisation import SyncPolicy


class Peers:
    """A scheduler and peers that ask it for work."""

    def __init__(self, policy, total=12, names="ab", save_every=0, **options):
        self.members = []
        counter = StepCounter(total, 0, save_every)
        self.scheduler = EpochScheduler(counter, SyncPolicy.from_text(policy), self.members.append, **options)
        for name in names:
            self.scheduler.join(name)

    def item(self, name) -> PeerWorkItem | None:
        """The next item of a peer; None where it would wait."""
        asked = []

        def gone():
            asked.append(name)
            return len(asked) > 1  # asked again after it has waited

        item = self.scheduler.take(name, gone)
        return None if len(asked) > 1 else item

    def take(self, name):
        item = self.item(name)
        return item and item.kind

    def hold(self, *names):
        """These peers ask and wait, as their threads would."""
        self.scheduler._asking.update(names)

    def begin(self, names="ab"):
        """The first epoch: one peer gives its weights, the others take them."""
        self.hold(*names)
        assert self.take(names[0]) == GIVE
        self.scheduler.weights_given()
        for name in names[1:]:
            assert self.take(name) == TAKE
            self.scheduler.weights_taken(name)

    def step(self, name):
        assert self.take(name) == STEP
        self.scheduler.complete(name)


def test_the_first_peer_gives_its_weights_and_the_others_take_them() -> None:
    peers = Peers("synchronous")
    peers.begin()
    assert peers.scheduler.required_epoch == 1
    peers.step("a")
    assert peers.take("a") is None
    peers.step("b")
    peers.step("a")


def test_the_first_epoch_waits_for_all_peers_that_are_expected() -> None:
    peers = Peers("asynchronous", names="a", expected=2, patience_s=60.0, clock=lambda: 0.0)
    assert peers.take("a") is None
    peers.scheduler.join("b")
    peers.begin()


def test_a_peer_that_joins_waits_until_all_have_completed_the_step_that_some_have_begun() -> None:
    peers = Peers("synchronous")
    peers.begin()
    assert peers.take("a") == STEP
    peers.scheduler.join("c")
    peers.hold("c")
    assert peers.take("b") == STEP  # a waits for its message
    peers.scheduler.complete("a")
    assert peers.take("a") is None
    peers.hold("a")
    peers.scheduler.complete("b")
    assert peers.item("b") == PeerWorkItem(GIVE, 1, 2, ("a", "b", "c"))
    peers.scheduler.weights_given()
    assert peers.item("c") == PeerWorkItem(TAKE, 1, 2, ("a", "b", "c"))
    assert peers.members[-1] == ("a", "b", "c")


def test_a_peer_that_leaves_interrupts_the_others_and_they_begin_a_new_epoch() -> None:
    peers = Peers("synchronous", names="abc")
    peers.begin("abc")
    for name in "abc":
        assert peers.take(name) == STEP
    peers.scheduler.complete("a")
    peers.scheduler.leave("c")
    assert peers.scheduler.required_epoch == 2
    peers.scheduler.abandon("b")
    peers.hold("a", "b")
    assert peers.take("a") == GIVE
    peers.scheduler.weights_given()
    assert peers.item("b") == PeerWorkItem(TAKE, 1, 2, ("a", "b"))  # of the step that a has completed
    peers.scheduler.weights_taken("b")
    assert peers.scheduler.required_epoch == 2
    assert peers.item("a") == PeerWorkItem(STEP, 1, 2, ("a", "b"))


def test_peers_that_wait_for_one_another_make_whole_rounds() -> None:
    peers = Peers("synchronous", total=3)
    peers.begin()
    for _ in range(2):
        assert peers.take("a") == peers.take("b") == STEP
        peers.scheduler.complete("a")
        assert peers.take("a") is None
        peers.scheduler.complete("b")
    assert peers.scheduler.done == 3
    assert peers.take("a") == EVALUATE
    assert peers.take("b") is None
    peers.scheduler.complete("a")
    assert peers.scheduler.finished
    assert peers.take("b") == FINISH


def test_a_peer_that_waits_for_nobody_has_its_next_order_while_it_makes_a_step() -> None:
    peers = Peers("asynchronous", total=30)
    peers.begin()
    peers.step("a")
    assert peers.take("a") == STEP
    ahead = peers.scheduler.take_ahead("a")
    assert ahead == PeerWorkItem(STEP, 2, 1, ("a", "b"), ordered=True)
    assert peers.scheduler.take_ahead("a") is None  # one and no more
    peers.scheduler.complete("a")
    assert peers.item("a") == ahead
    peers.scheduler.complete("a")
    assert peers.scheduler.done == 3


@pytest.mark.parametrize("policy", ["synchronous", "bounded", "backup"])
def test_peers_that_wait_for_others_get_one_order_at_a_time(policy) -> None:
    peers = Peers(policy, total=30)
    peers.begin()
    for name in "ab":
        peers.step(name)
    assert peers.take("a") == STEP
    assert peers.scheduler.take_ahead("a") is None


def test_the_last_steps_are_ordered_one_at_a_time() -> None:
    """Else the others, which have made the rest by then, would wait for this one."""
    peers = Peers("asynchronous", total=12)
    peers.begin()
    for name in "abbbbb":
        peers.step(name)
    assert peers.take("a") == STEP
    assert peers.scheduler.take_ahead("a") is None
    assert peers.take("b") == STEP


def test_nothing_is_ordered_ahead_where_a_peer_joins_or_a_checkpoint_is_due() -> None:
    joined, due = (Peers("asynchronous", total=30, save_every=every) for every in (0, 3))
    for peers in (joined, due):
        peers.begin()
        peers.step("a")
        assert peers.take("a") == peers.take("b") == STEP
    joined.scheduler.join("c")
    due.scheduler.complete("b")
    due.scheduler.complete("a")
    assert joined.scheduler.take_ahead("a") is None
    assert due.scheduler.take_ahead("b") is None


@pytest.mark.parametrize(("save_every", "ahead"), [(5, False), (50, True)])
def test_no_order_ahead_holds_up_a_checkpoint(save_every, ahead) -> None:
    """After two steps, two more are under way and the next ones would end beyond the fifth."""
    peers = Peers("asynchronous", total=100, save_every=save_every)
    peers.begin()
    for name in "ab":
        peers.step(name)
    assert peers.take("a") == peers.take("b") == STEP
    assert (peers.scheduler.take_ahead("a") is not None) == ahead


def test_two_orders_of_an_interrupted_epoch_are_both_given_up_before_the_next_one() -> None:
    peers = Peers("asynchronous", total=30, names="abc")
    peers.begin("abc")
    peers.step("a")
    assert peers.take("a") == STEP
    assert peers.scheduler.take_ahead("a") is not None
    peers.scheduler.leave("c")
    peers.hold("b")
    peers.scheduler.abandon("a")
    assert peers.item("a").ordered
    peers.scheduler.abandon("a")
    peers.hold("a")
    assert peers.item("b").epoch == 2
    assert peers.scheduler.done == 1


def test_a_peer_that_leaves_with_two_orders_leaves_their_steps_to_others() -> None:
    peers = Peers("asynchronous", total=10)
    peers.begin()
    peers.step("b")
    assert peers.take("b") == STEP
    assert peers.scheduler.take_ahead("b") is not None
    peers.scheduler.leave("b")
    for _ in range(9):
        peers.step("a")
    assert peers.take("a") == EVALUATE


def test_a_checkpoint_is_taken_when_all_peers_are_at_the_end_of_a_step() -> None:
    peers = Peers("synchronous", save_every=1)
    peers.begin()
    assert peers.take("a") == peers.take("b") == STEP
    peers.scheduler.complete("a")
    assert peers.take("a") is None
    peers.scheduler.complete("b")
    peers.hold("a")
    assert peers.take("b") == SAVE
    peers.scheduler.saved("b")
    assert not peers.scheduler.hand_overs.take_save(late=False)
    assert peers.take("b") is None
    assert peers.take("a") == SAVE
    peers.scheduler.saved("a")
    assert peers.scheduler.hand_overs.take_save(late=False)
    peers.step("b")


def test_peers_that_wait_for_nobody_hand_over_what_they_have_each_after_its_own_step() -> None:
    peers = Peers("asynchronous", save_every=2, host="b")
    peers.begin()
    peers.step("a")
    assert peers.take("b") == STEP  # and it takes its time
    peers.step("a")
    assert peers.take("a") == SAVE
    peers.scheduler.saved("a")
    for _ in range(4):
        peers.step("a")  # more of them are due meanwhile
    assert not peers.scheduler.hand_overs.take_save(late=False)
    assert peers.scheduler.hand_overs.take_save(late=True)
    peers.scheduler.complete("b")
    assert peers.take("b") == SAVE


def test_the_peer_on_the_coordinators_device_is_saved_first() -> None:
    peers = Peers("synchronous", save_every=1, host="b")
    peers.begin()
    assert peers.take("a") == peers.take("b") == STEP
    for name in "ab":
        peers.scheduler.complete(name)
    peers.hold("b")
    assert peers.take("a") is None
    assert peers.take("b") == SAVE
    peers.scheduler.saved("b")
    assert peers.take("a") == SAVE


def test_a_run_is_orphaned_when_no_peer_is_left_that_has_its_weights() -> None:
    peers = Peers("asynchronous")
    peers.begin()
    peers.step("a")
    peers.scheduler.join("c")
    peers.scheduler.leave("a")
    assert not peers.scheduler.orphaned
    peers.scheduler.leave("b")
    assert peers.scheduler.orphaned


def test_a_stop_interrupts_peers_that_wait_for_one_another() -> None:
    peers = Peers("synchronous")
    peers.begin()
    assert peers.take("a") == STEP
    peers.scheduler.stop()
    assert peers.scheduler.required_epoch == RUN_OVER
    assert peers.take("b") == FINISH
