"""Batches of members: the same, by what each manages, or by what arrives."""

import numpy as np
import pytest

from backends.training.batch_size import BATCH_POLICIES, DynamicBatches


def run(pacing: DynamicBatches, sample_s: dict[str, float], iterations: int) -> None:
    for _ in range(iterations):
        for name, cost in sample_s.items():
            batch = pacing.batch(name)
            pacing.note(name, batch, cost * batch)


@pytest.mark.parametrize("kind", BATCH_POLICIES)
def test_each_says_how_many_samples_a_member_takes_and_is_restored(kind: str) -> None:
    made, again = (BATCH_POLICIES[kind](32, 2, 100_000, 1) for _ in range(2))
    for pacing in (made, again):
        pacing.begin(("a", "b"))
    for _ in range(5):
        for name in "ab":
            made.note(name, made.batch(name), 0.1)
    again.restore(made.state())
    for name in "ab":
        for pacing in (made, again):
            pacing.note(name, 32, 0.1)
    assert [again.batch(name) for name in "ab"] == [made.batch(name) for name in "ab"]
    assert all(made.batch(name) >= 1 for name in "ab")


def test_who_is_three_times_as_fast_gets_three_times_as_many_samples() -> None:
    pacing = DynamicBatches(32, 2, 100_000, 0)
    pacing.begin(("a", "b"))
    run(pacing, {"a": 0.001, "b": 0.003}, 10)
    assert (pacing.batch("a"), pacing.batch("b")) == (48, 16)


def test_a_device_that_slows_gets_fewer() -> None:
    pacing = DynamicBatches(32, 2, 100, 0)  # too few samples for the global batch to grow
    pacing.begin(("a", "b"))
    run(pacing, {"a": 0.001, "b": 0.001}, 40)
    assert pacing.batch("a") == pacing.batch("b") == 32
    run(pacing, {"a": 0.001, "b": 0.004}, 60)
    assert pacing.batch("a") > 2 * pacing.batch("b")


def test_the_global_batch_grows_with_the_iterations_of_all() -> None:
    pacing = DynamicBatches(32, 2, 100_000, 0)
    pacing.begin(("a", "b"))
    run(pacing, {"a": 0.001, "b": 0.001}, 60)
    assert pacing.batch("a") + pacing.batch("b") == 64 + 2 * 32


def test_one_that_leaves_leaves_its_share_to_the_others() -> None:
    pacing = DynamicBatches(32, 2, 100, 0)
    pacing.begin(("a", "b"))
    run(pacing, {"a": 0.001, "b": 0.001}, 5)
    pacing.begin(("a",))
    pacing.note("b", 32, 0.1)
    run(pacing, {"a": 0.001}, 5)
    assert pacing.batch("a") == 64
    assert np.isfinite(pacing.batch("a"))
