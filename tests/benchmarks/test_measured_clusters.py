"""Runs of real GPU nodes, measured by others, are predicted within bounds."""

import pytest

from benchmarks.measured_clusters import (
    DDP,
    FILE,
    OURS,
    Run,
    computing_as,
    fitted,
    measured,
    predicted,
    predicted_s,
    read,
    relative_errors,
    repeated,
    ring_limit,
)

ONE = Run("localsgd", "1000", 8, 4, 100_000_000, 1e8, 0.02, 0.0, 80, 10, 0.025, 1.5, 0.2)

needs_data = pytest.mark.skipif(not FILE.is_file(), reason=f"{FILE.name} is not beside this checkout")


def test_the_ring_limit_spreads_an_exchange_over_the_steps_between() -> None:
    assert ring_limit(ONE) == pytest.approx((0.02 + 1.5 / 8, 8 * 0.02 + 1.5, 1.5))


def test_a_round_is_its_local_steps_the_last_with_an_exchange() -> None:
    assert measured(ONE) == pytest.approx((0.2, 7 * 0.025 + 1.5, 1.5 - 0.02))


@pytest.mark.parametrize("steps", [8, 32])
def test_step_round_and_exchange_are_predicted_as_one(steps: int) -> None:
    run = ONE._replace(local_steps=steps, steps=10 * steps)
    said = predicted(run)
    connects_s = OURS.connect_s if steps == 32 else 0.0  # in the mean step, and in no round of several
    assert said.round == pytest.approx(steps * 0.02 + said.exchange)
    assert 10 * steps * said.step == pytest.approx(10 * said.round + connects_s)


def test_the_only_exchange_of_a_run_is_its_first() -> None:
    once = ONE._replace(local_steps=128, steps=128, exchanges=1)
    several = once._replace(steps=1280, exchanges=10)
    assert predicted(once).exchange - predicted(several).exchange == pytest.approx(OURS.connect_s)


def test_a_step_of_ddp_is_a_round() -> None:
    said = predicted(ONE._replace(algorithm=DDP, local_steps=1, exchanges=80))
    assert said.round == said.step == pytest.approx(said.exchange + 0.02)


def test_computing_may_be_that_of_others() -> None:
    others = [ONE._replace(compute_s=seconds, optimizer_s=0.001) for seconds in (0.01, 0.03, 0.09)]
    run = computing_as(ONE._replace(optimizer_s=0.002), others)
    assert (run.compute_s, run.optimizer_s) == pytest.approx((0.031, 0.0))
    assert run._replace(compute_s=ONE.compute_s) == ONE


def test_a_repetition_is_told_by_the_mean_of_the_others() -> None:
    runs = [ONE._replace(mean_step_s=seconds) for seconds in (0.1, 0.2, 0.6)]
    found = repeated([*runs, ONE._replace(link="5000")])
    assert [told.step for told, _ in found] == pytest.approx([0.4, 0.35, 0.15])
    assert [run for _, run in found] == runs


def test_a_first_exchange_that_was_measured_connects() -> None:
    later = ONE._replace(local_steps=32, steps=320)
    connects_s = 320 * predicted_s(later) - 320 * predicted_s(later, OURS._replace(connect_s=0.0))
    assert connects_s == pytest.approx(OURS.connect_s)
    assert predicted_s(ONE) == predicted_s(ONE, OURS._replace(connect_s=0.0))


def test_a_fit_finds_the_constants_that_made_the_runs() -> None:
    wanted = OURS._replace(hop_s=0.001, flows=1.2)
    runs = [
        ONE._replace(algorithm=algorithm, link=link, bytes_per_s=rate, local_steps=steps, model_bytes=size)
        for algorithm, steps in ((DDP, 1), ("diloco", 8), ("diloco", 32))
        for link, rate in (("5000", 6e8), ("unshaped", 1.2e9))
        for size in (100_000_000, 200_000_000)
    ]
    made = [run._replace(mean_step_s=predicted_s(run, wanted)) for run in runs]
    assert fitted(made) == pytest.approx(wanted, rel=0.01)


@needs_data
def test_local_updates_are_predicted_within_five_percent_and_ddp_within_fifteen() -> None:
    runs = read()
    for chosen, bound in (
        ([run for run in runs if run.algorithm != DDP], 0.05),
        ([run for run in runs if run.algorithm == DDP], 0.15),
    ):
        assert abs(relative_errors(chosen, predicted_s)).mean() <= bound
        assert abs(relative_errors(chosen, lambda run: ring_limit(run).step)).mean() > bound


@needs_data
@pytest.mark.parametrize("steps", [1, 8, 32, 128])
def test_so_are_local_updates_of_a_length_that_was_not_fitted(steps: int) -> None:
    runs = [run for run in read() if run.algorithm != DDP]
    known = [run for run in runs if run.local_steps != steps]
    held, fit = [run for run in runs if run.local_steps == steps], fitted(known)
    assert abs(relative_errors(held, lambda run: predicted_s(computing_as(run, known), fit))).mean() <= 0.05
