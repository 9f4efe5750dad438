"""Runs of real GPU nodes, measured by others, are predicted within bounds."""

import pytest

from benchmarks.measured_clusters import DDP, FILE, OURS, Run, fitted, predicted_s, read, relative_errors, ring_limit_s

ONE = Run("localsgd", "1000", 8, 4, 100_000_000, 1e8, 0.02, 0.0, 80, 10, 0.2)

needs_data = pytest.mark.skipif(not FILE.is_file(), reason=f"{FILE.name} is not beside this checkout")


def test_the_ring_limit_spreads_an_exchange_over_the_steps_between() -> None:
    assert ring_limit_s(ONE) == pytest.approx(0.02 + 1.5 / 8)


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
        assert abs(relative_errors(chosen, ring_limit_s)).mean() > bound


@needs_data
@pytest.mark.parametrize("steps", [1, 8, 32, 128])
def test_so_are_local_updates_of_a_length_that_was_not_fitted(steps: int) -> None:
    runs = [run for run in read() if run.algorithm != DDP]
    fit = fitted([run for run in runs if run.local_steps != steps])
    held = [run for run in runs if run.local_steps == steps]
    assert abs(relative_errors(held, lambda run: predicted_s(run, fit))).mean() <= 0.05
