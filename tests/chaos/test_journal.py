"""A replay accepts the updates of any split of the steps, and nothing else."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.backends.fakes import images
from tests.chaos import journal
from tests.chaos.journal import CLASSES, PIXELS, Entry, Replay, State

RATE, MOMENTUM = 0.1, 0.5
SAMPLES, LABELS = images(64)
OF_SAMPLE = {sample.tobytes(): int(label) for sample, label in zip(SAMPLES, LABELS, strict=True)}
FIRST = np.random.default_rng(3).normal(size=(PIXELS + 1) * CLASSES).astype(np.float32)


def trained(*rounds: str) -> tuple[list[Entry], list[State]]:
    """A journal of rounds, each of gradients of devices by letter; a small one is not applied."""
    entries, states = [], [State(0, FIRST, np.zeros_like(FIRST))]
    batches = iter(range(0, 64, 4))
    for devices in rounds:
        step, weights, velocity = states[-1]
        own = []
        for device in devices:
            start = next(batches)
            entries.append(Entry(start, device.lower(), weights, SAMPLES[start : start + 4].reshape(4, PIXELS)))
            if device.isupper():
                own.append(RATE * journal._gradient(entries[-1], OF_SAMPLE))
        velocity = (MOMENTUM * velocity + np.mean(own, axis=0)).astype(np.float32)
        states.append(State(step + len(own), weights - velocity, velocity))
    return entries, states


def replayed(entries: list[Entry], start: State | None, end: State, total: int = 99) -> Replay:
    return journal.replay(entries, OF_SAMPLE, RATE, MOMENTUM, start, end, total)


@pytest.mark.parametrize("rounds", [("AB", "AB", "AB"), ("A", "AB", "B"), ("aB", "bAB", "A")])
def test_means_of_what_was_computed_at_the_weights_before_are_accepted(rounds: tuple[str, ...]) -> None:
    entries, states = trained(*rounds)
    assert replayed(entries, None, states[-1]) == Replay("", states[-1].step)


def test_it_goes_on_from_a_checkpoint_and_beyond_the_one_that_was_saved() -> None:
    entries, states = trained("AB", "AB", "AB", "AB")
    assert replayed(entries[2:], states[1], states[2]) == Replay("", states[3].step)


def test_a_last_round_may_exceed_the_steps_asked_for_and_is_not_counted_beyond_them() -> None:
    entries, states = trained("AB", "A", "AB")
    asked = states[-1]._replace(step=4)
    assert replayed(entries, None, asked, total=4) == Replay("", 5)
    assert replayed(entries, None, states[-2]._replace(step=4), total=4).problem
    assert replayed(entries, None, asked).problem


def test_the_end_of_one_run_is_not_that_of_another() -> None:
    entries, states = trained("AB", "AB", "AB")
    saved = states[-1]._replace(weights=states[-1].weights + np.float32(1e-4))
    assert replayed(entries, None, saved).problem


@pytest.mark.parametrize("error", ["a gradient twice", "a gradient lost", "another step", "no momentum"])
def test_what_no_sound_run_does_is_refused(error: str) -> None:
    entries, states = trained("AB", "AB", "AB")
    start, end = None, states[-1]
    if error == "a gradient twice":
        end = end._replace(weights=end.weights - (states[2].weights - end.weights) * np.float32(0.5))
    elif error == "a gradient lost":
        del entries[2]
    elif error == "another step":
        end = end._replace(step=end.step - 1)
    else:
        start = states[1]._replace(velocity=np.zeros_like(FIRST))
    assert replayed(entries, start, end).problem


def test_an_empty_journal_explains_nothing() -> None:
    assert replayed([], None, trained("A")[1][-1]).problem


def test_journals_are_read_in_the_order_of_time_and_half_of_a_line_is_no_gradient(tmp_path: Path) -> None:
    for name, moments in (("anna", (2.0, 3.0)), ("bert", (1.0,))):
        lines = [json.dumps({"at_s": at_s, "weights": "AAAAAA==", "pixels": ""}) + "\n" for at_s in moments]
        (tmp_path / f"journal-{name}.jsonl").write_text("".join(lines) + lines[0][:20])
    assert [(each.at_s, each.device) for each in journal.read(tmp_path)] == [
        (1.0, "bert"),
        (2.0, "anna"),
        (3.0, "anna"),
    ]
    assert journal.count(tmp_path) == 3
