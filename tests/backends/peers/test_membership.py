"""Who among peers does what next, in one thread: whoever would have to wait is sent home."""

from backends.peers.membership import GIVE, SAVE, TAKE, MembershipScheduler
from backends.strategies.synchronisation import SyncPolicy
from backends.training.step_queue import EVALUATE, FINISH, STEP


class Table:
    """Turns and who asks for them."""

    def __init__(self, gate, total=12, names="ab", **changes):
        self.turns = MembershipScheduler(total, SyncPolicy.from_text(gate), **changes)
        for name in names:
            self.turns.join(name)

    def ask(self, name):
        """The kind of the next turn; None where one would wait."""
        asked = []

        def gone():
            asked.append(name)
            return len(asked) > 1  # asked again after it has waited

        turn = self.turns.ask(name, gone)
        return None if len(asked) > 1 else turn.kind

    def hold(self, *names):
        """They ask and wait, as their threads would."""
        self.turns._asking.update(names)

    def begin(self, names="ab"):
        """The first epoch: one gives its weights, the others take them."""
        self.hold(*names)
        assert self.ask(names[0]) == GIVE
        self.turns.gave()
        for name in names[1:]:
            assert self.ask(name) == TAKE
            self.turns.took(name)

    def step(self, name):
        assert self.ask(name) == STEP
        self.turns.complete(name)


def test_the_first_gives_its_weights_and_the_others_take_them() -> None:
    table = Table("synchronous")
    table.begin()
    assert table.turns.call == 1
    table.step("a")
    assert table.ask("a") is None
    table.step("b")
    table.step("a")


def test_the_first_epoch_waits_for_all_who_are_expected() -> None:
    table = Table("asynchronous", names="a", expected=2, patience_s=60.0)
    assert table.ask("a") is None
    table.turns.join("b")
    table.begin()


def test_nobody_is_waited_for_longer_than_patience_lasts() -> None:
    table = Table("asynchronous", names="a", expected=2, patience_s=0.0)
    assert table.ask("a") == STEP


def test_one_that_comes_waits_until_all_have_ended_the_step_that_some_have_begun() -> None:
    table = Table("synchronous")
    table.begin()
    assert table.ask("a") == STEP
    table.turns.join("c")
    table.hold("c")
    assert table.ask("b") == STEP  # a waits for its message
    table.turns.complete("a")
    assert table.ask("a") is None
    table.hold("a")
    table.turns.complete("b")
    assert table.ask("b") == GIVE or table.ask("b") is None
    assert table.turns._members == ("a", "b", "c")
    assert table.turns.clocks() == {"a": 1, "b": 1, "c": 1}


def test_who_leaves_interrupts_the_others_and_they_meet_again() -> None:
    table = Table("synchronous", names="abc")
    table.begin("abc")
    for name in "abc":
        assert table.ask(name) == STEP
    table.turns.complete("a")
    table.turns.leave("c")
    assert table.turns.call == 2
    table.turns.abandon("b")
    table.hold("a", "b")
    assert table.ask("a") == GIVE
    table.turns.gave()
    assert table.ask("b") == TAKE  # of the step that a has ended
    table.turns.took("b")
    assert table.turns.clocks() == {"a": 1, "b": 1}
    assert table.turns.call == 2


def test_rounds_of_those_who_wait_are_made_whole() -> None:
    table = Table("synchronous", total=3)
    table.begin()
    for _ in range(2):
        assert table.ask("a") == table.ask("b") == STEP
        table.turns.complete("a")
        assert table.ask("a") is None
        table.turns.complete("b")
    assert table.turns.done == 3
    assert table.ask("a") == EVALUATE
    assert table.ask("b") is None
    table.turns.complete("a")
    assert table.turns.finished
    assert table.ask("b") == FINISH


def test_those_who_do_not_wait_make_exactly_so_many() -> None:
    table = Table("asynchronous", total=3)
    table.begin()
    assert table.ask("a") == table.ask("b") == STEP
    table.turns.complete("a")
    assert table.ask("a") == STEP
    table.turns.complete("a")
    assert table.ask("a") is None
    table.turns.complete("b")
    assert table.ask("b") == EVALUATE


def test_a_checkpoint_is_taken_when_all_are_at_the_end_of_a_step() -> None:
    table = Table("asynchronous", save_every=2)
    table.begin()
    table.step("a")
    assert table.ask("b") == STEP
    table.step("a")
    assert table.ask("a") is None
    table.turns.complete("b")
    table.hold("a")
    assert table.ask("b") == SAVE
    assert not table.turns.saved("b")
    assert table.ask("b") is None
    assert table.ask("a") == SAVE
    assert table.turns.saved("a")
    table.step("b")


def test_the_end_calls_those_who_wait_for_one_another() -> None:
    table = Table("synchronous")
    table.begin()
    assert table.ask("a") == STEP
    table.turns.stop()
    assert table.turns.call == 2
    assert table.ask("b") == FINISH
