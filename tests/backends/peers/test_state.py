"""The coordinator state of peers, in one thread: orders, batch sizes, knowledge and checkpoints."""

import numpy as np
import pytest

from backends.frameworks.layout import Layout, Variable
from backends.frameworks.optimizer import MOMENTUM
from backends.hosting.run_clock import RunClock
from backends.peers.state import ORPHANED, PeerRunState
from backends.protocol.events import Diverged, Evaluated
from backends.protocol.frames import (
    EVALUATE,
    FINISH,
    GIVE,
    SAVE,
    STATE,
    STEP,
    TAKE,
    WEIGHTS,
    PeerHello,
    PeerStepDone,
    Scores,
)
from backends.strategies.strategy import Strategy
from backends.training import checkpoint
from backends.training.lr_schedule import RateSchedule
from tests.backends.fakes import run_spec

LAYOUT = Layout((Variable("w", (2,), 0, 2),), (Variable("mean", (1,), 0, 1),))
OTHER = Layout((Variable("w", (3,), 0, 3),), ())


class Run:
    """A state, the events it has emitted, and peers that ask it for work."""

    def __init__(self, folder, text="baseline", steps=8, names="ab", **changes):
        strategy = Strategy.from_text(text)
        values = {
            "strategy": strategy,
            "schedule": RateSchedule(),
            "members": len(names),
            "training_samples": 10_000,
            **changes,
        }
        self.events = []
        self.spec = run_spec(folder, steps, **values)
        self.state = PeerRunState(self.spec, self.events.append)

    def join(self, name, digest="equal", layout=LAYOUT):
        return self.state.join(name, PeerHello(layout, "127.0.0.1", 7000 + ord(name), digest))

    def begin(self, names="ab"):
        for name in names:
            self.join(name)
        self.hold(*names)

    def hold(self, *names):
        """These peers ask and wait, as their threads would."""
        self.state.step_queue._asking.update(names)

    def take(self, name):
        asked = []
        return self.state.take(name, lambda: bool(asked) or asked.append(name))

    def step(self, names="ab", seconds=None, losses=None):
        """Every peer makes a step; returns their orders."""
        items = {name: self.take(name) for name in names}
        orders = {name: self.state.step_order(name, item) for name, item in items.items()}
        for name, item in items.items():
            assert item.kind == STEP
            loss, took = (losses or {}).get(name, 1.0), (seconds or {}).get(name, 0.1)
            answer = PeerStepDone(loss, orders[name].batch, took, 0, False)
            self.state.complete_step(name, item, answer)
        return orders


@pytest.mark.parametrize(("stream", "ahead"), [("", True), ("replay:S1", False)])
def test_a_peer_whose_stream_may_end_gets_one_order_at_a_time(tmp_path, stream, ahead):
    run = Run(tmp_path, "ako", steps=40, stream=stream)
    run.begin()
    run.step()
    assert run.take("a").kind == STEP
    assert (run.state.take_ahead("a") is not None) == ahead


def own(weight):
    """The arrays of a peer all of whose weights are equal."""
    return {WEIGHTS: (np.full(2, weight, np.float32), np.zeros(2, np.float32)), STATE: (np.ones(1, np.float32),)}


def test_a_peer_that_begins_with_other_weights_takes_those_of_another(tmp_path) -> None:
    run = Run(tmp_path)
    run.join("a")
    run.join("b", digest="other")
    run.hold("a", "b")
    assert run.take("a").kind == GIVE
    run.state.give_weights((np.ones(2), np.zeros(2), np.ones(1)))
    assert run.take("b").kind == TAKE


def test_a_peer_with_another_model_is_refused(tmp_path) -> None:
    run = Run(tmp_path)
    run.join("a")
    with pytest.raises(ValueError, match="its model is not the run's"):
        run.join("b", layout=OTHER)


def test_the_rate_is_that_of_the_steps_that_all_peers_have_made(tmp_path) -> None:
    run = Run(tmp_path, steps=8, schedule=RateSchedule("step", 8))
    run.begin()
    rates = [run.step()["a"].rate for _ in range(4)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.001])


def test_a_slower_peer_gets_smaller_batches(tmp_path) -> None:
    run = Run(tmp_path, "dlion", steps=100)
    run.begin()
    for _ in range(10):
        orders = run.step(seconds={"a": 0.1, "b": 0.3})
    assert orders["a"].batch > orders["b"].batch


def test_the_best_peer_gives_its_weights_to_the_others_when_that_is_due(tmp_path) -> None:
    run = Run(tmp_path, "baseline:knowledge=best-to-all", steps=1000)
    run.begin()
    given = [(order["a"].gives_to, order["b"].gives_to) for order in _steps(run, 102)]
    assert [at for at, (by_a, _) in enumerate(given) if by_a] == []
    assert [(at, by_b) for at, (_, by_b) in enumerate(given) if by_b] == [(100, ("a",))]


def _steps(run, count):
    return [run.step(losses={"a": 2.0, "b": 1.0}) for _ in range(count)]


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path) -> None:
    run = Run(tmp_path)
    run.begin()
    item = run.take("a")
    run.state.complete_step("a", item, PeerStepDone(float("nan"), 8, 0.1, 0, False))
    assert run.take("b").kind == FINISH
    assert "training diverged: the gradient at step 0 on a" in run.state.reason
    assert run.events == [Diverged("a", 0, "nan")]


def test_an_interrupted_step_is_made_again_in_a_new_epoch(tmp_path) -> None:
    run = Run(tmp_path)
    run.begin()
    for name in "ab":
        run.take(name)
    run.state.interrupt_step("a")
    run.state.interrupt_step("b")
    run.hold("a", "b")
    item = run.take("a")
    assert (item.kind, item.step, item.epoch) == (STEP, 0, 2)


def test_the_run_ends_with_the_last_peer_that_has_the_weights(tmp_path) -> None:
    run = Run(tmp_path)
    run.begin()
    run.step()
    run.state.leave("a", lost=True)
    assert run.state.reason is None
    run.state.leave("b", lost=True)
    assert run.state.reason == ORPHANED


def test_the_last_evaluation_ends_the_run(tmp_path) -> None:
    run = Run(tmp_path, steps=2)
    run.begin()
    run.step()
    assert run.state.clock.ended
    item = run.take("a")
    assert item.kind == EVALUATE
    run.state.record_evaluation("a", item.step, Scores(1.0, {"accuracy": 0.5}, 0.1))
    assert run.state.step_queue.finished
    assert run.state.evaluations == [Evaluated(2, "a", loss=1.0, metrics={"accuracy": 0.5}, seconds=0.1)]


@pytest.mark.parametrize(("digests", "wanted"), [("xx", [True, False]), ("xy", [True, True])])
def test_equal_weights_are_handed_over_once(tmp_path, digests, wanted) -> None:
    run = Run(tmp_path, "allreduce")
    run.begin()
    run.step()
    assert [run.state.wants_weights(name, digest) for name, digest in zip("ab", digests, strict=True)] == wanted


def test_a_checkpoint_has_the_mean_of_different_weights_and_those_of_each_peer(tmp_path) -> None:
    run = Run(tmp_path, checkpoint_every=2, steps=4)
    run.begin()
    run.step()
    run.hold("a", "b")
    assert [run.take(name).kind for name in "ab"] == [SAVE, SAVE]
    for name, weight in (("a", 1.0), ("b", 3.0)):
        run.state.wants_weights(name, name)
        run.state.add_state(name, own(weight), 1)
        run.state.complete_save(name)
    run.state._checkpoint_writer.join()
    saved = checkpoint.read(run.spec.checkpoints.path)
    assert saved.layout == LAYOUT
    assert saved.weights.tolist() == [2.0, 2.0]
    assert saved.member_states["a/own"][0].tolist() == [1.0, 1.0]
    assert set(saved.member_states) == {"a/own", "a/clock", "b/own", "b/clock"}


def hand_over(run, name, weight, steps):
    assert run.take(name).kind == SAVE
    assert run.state.wants_weights(name, f"{name}{weight}")
    run.state.add_state(name, own(weight), steps)
    run.state.complete_save(name)


def written(run):
    run.state._checkpoint_writer.join()
    saved = checkpoint.read(run.spec.checkpoints.path)
    return saved.meta["step"], saved.weights[0], {name for name in saved.member_states if name.endswith("clock")}


def test_a_peer_that_hangs_holds_up_no_checkpoint_of_those_that_do_not_wait_for_it(tmp_path) -> None:
    run, now_s = Run(tmp_path, "ako", steps=40, checkpoint_every_s=60.0), [0.0]
    run.state.clock = RunClock(lambda: now_s[0])
    run.begin()
    run.step()
    assert run.take("b").kind == STEP  # and it hangs
    now_s[0] = 60.0
    run.state.save_in_time()
    hand_over(run, "a", 1.0, steps=1)
    run.step("a")  # it goes on meanwhile
    now_s[0] = 120.0
    run.state.save_in_time()
    assert not (tmp_path / "checkpoint.npz").exists()
    now_s[0] = 121.0
    run.state.save_in_time()
    assert written(run) == (2, 1.0, {"a/clock"})  # not the step that it made after it had handed over


def test_what_a_slow_peer_handed_over_before_is_in_the_next_checkpoint_too(tmp_path) -> None:
    run, now_s = Run(tmp_path, "ako", steps=40, checkpoint_every_s=60.0), [0.0]
    run.state.clock = RunClock(lambda: now_s[0])
    run.begin()
    run.step()
    now_s[0] = 60.0
    run.state.save_in_time()
    hand_over(run, "a", 1.0, steps=1)
    hand_over(run, "b", 3.0, steps=1)
    assert written(run) == (2, 2.0, {"a/clock", "b/clock"})
    run.step()
    assert run.take("b").kind == STEP  # and it takes its time
    now_s[0] = 130.0
    run.state.save_in_time()
    hand_over(run, "a", 5.0, steps=2)
    now_s[0] = 191.0
    run.state.save_in_time()
    assert written(run) == (3, 4.0, {"a/clock", "b/clock"})


def test_the_last_peer_that_was_to_hand_over_may_leave_instead(tmp_path) -> None:
    run = Run(tmp_path, "allreduce", steps=40, checkpoint_every=2)
    run.begin()
    run.step()
    run.hold("a", "b")
    hand_over(run, "a", 1.0, steps=1)
    run.state.leave("b", lost=True)
    assert written(run) == (2, 1.0, {"a/clock"})


def test_a_resumed_peer_goes_on_from_what_it_had_and_a_new_one_from_the_furthest(tmp_path) -> None:
    states = {"a/own": own(1.0)[WEIGHTS], "a/clock": (np.array([3]),), "a/peers": (np.ones(2),)}
    meta = {"step": 5, "evaluations": []}
    path = str(tmp_path / "before.npz")
    saved = checkpoint.Checkpoint(np.full(2, 9.0), {MOMENTUM: np.zeros(2)}, np.ones(1), meta, LAYOUT, states)
    checkpoint.write(path, saved)
    run = Run(tmp_path, resume=path)
    resumed, other = run.join("a"), run.join("b")
    assert resumed["own"][0].tolist() == [1.0, 1.0] and set(resumed) == {"own", "state", "peers"}
    assert other["own"][0].tolist() == [1.0, 1.0] and set(other) == {"own", "state"}
    run.hold("a", "b")
    assert run.state.step_queue._steps == {"a": 3, "b": 3}
