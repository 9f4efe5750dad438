"""Runs of real GPU nodes, measured by others, are predicted within bounds."""

import pytest

from benchmarks.measured_clusters import (
    DDP,
    FILE,
    OURS,
    Run,
    computing_as,
    fitted,
    predicted,
    predicted_s,
    read,
    relative_errors,
    ring_limit,
)

ONE = Run("localsgd", "1000", 8, 4, 100_000_000, 1e8, 0.02, 0.0, 80, 10, 0.025, 1.5, 0.2)

needs_data = pytest.mark.skipif(not FILE.is_file(), reason=f"{FILE.name} is not beside this checkout")


@pytest.mark.parametrize("steps", [8, 32])
def test_step_round_and_exchange_are_predicted_as_one(steps: int) -> None:
    run = ONE._replace(local_steps=steps, steps=10 * steps)
    said = predicted(run)
    connects_s = OURS.connect_s if steps == 32 else 0.0  # in the mean step, and in no round of several
    assert said.round == pytest.approx(steps * 0.02 + said.exchange)
    assert 10 * steps * said.step == pytest.approx(10 * said.round + connects_s)


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
