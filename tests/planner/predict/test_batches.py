"""How many images a step has, over a whole run."""

import pytest

from backends.strategies.batching import GlobalBatch
from backends.strategies.sample_streams import draw_rate
from backends.strategies.strategy import Strategy
from backends.streams.spec import StreamSpec
from backends.training.run_settings import RunSettings
from planner.predict.batches import TRAINING_SAMPLES, RunLength, drawn, mean_batch, notes, of_global, of_run
from planner.predict.sample_efficiency import Learning


def run_of(steps: int, **learning: float) -> RunLength:
    return RunLength(steps, Learning(TRAINING_SAMPLES, **learning))


def grown(rounds: int, start: int = 96, samples: int = 60_000) -> list[int]:
    control, sizes = GlobalBatch(start, samples), []
    for _ in range(rounds):
        sizes.append(control.size)
        control.advance()
    return sizes


@pytest.mark.parametrize("rounds", [1, 30, 700, 5000])
def test_a_growing_batch_is_the_mean_over_its_rounds(rounds: int) -> None:
    assert mean_batch(Strategy.from_text("dlion"), 3, 32, 60_000, rounds=rounds) == pytest.approx(
        sum(grown(rounds)) / rounds / 3
    )


def test_or_over_as_many_rounds_as_so_many_images_take() -> None:
    images = sum(grown(700)) + 0.5 * grown(701)[-1]
    assert mean_batch(Strategy.from_text("dlion"), 3, 32, 60_000, images=images) == pytest.approx(images / 700.5 / 3)


def test_few_training_images_let_it_grow_little() -> None:
    assert mean_batch(Strategy.from_text("dlion"), 3, 32, 3_000, rounds=10_000) <= 2 * 300 / 3 + 1
    assert notes(RunSettings(strategy=Strategy.from_text("dlion")), RunLength(1000, Learning(3_000))) == [
        "batch sizes grow as they do on 3,000 training samples"
    ]


def test_a_run_to_a_target_makes_as_many_steps_as_hold_the_images_that_it_needs() -> None:
    found = of_run(Strategy.from_text("hop"), 3, 32, run_of(1000, sample_efficiency=0.8))
    assert found.steps == pytest.approx([1.0, 1.0, 1.25, 1.25])  # one alone exchanges nothing
    wide = of_run(Strategy.from_text("hop"), 3, 32, run_of(1000, sample_efficiency=0.8, critical_batch=32.0))
    assert wide.steps == pytest.approx([1.0, 1.0, 1.5 / 0.8, 2.0 / 0.8])
    growing = of_run(Strategy.from_text("dlion"), 3, 32, run_of(1000, sample_efficiency=0.5))
    assert growing.steps[3] * growing.images[3] * 1000 == pytest.approx(1000 * 32 / 0.5)
    assert growing.images[3] > 32


def test_a_batch_that_grows_needs_more_images_the_larger_it_gets() -> None:
    """A step of so many images teaches no more than a synchronous one of as many."""
    critical, usual, n = 92.0, 16, 4
    run = run_of(3500, sample_efficiency=1.0, critical_batch=critical)
    found = of_run(Strategy.from_text("dlion"), n, usual, run)
    mean = float(found.images[n])
    images = found.steps[n] * mean * 3500
    assert images == pytest.approx(3500 * usual * (critical + n * mean) / (critical + usual), rel=0.01)
    assert mean == pytest.approx(mean_batch(Strategy.from_text("dlion"), n, usual, 60_000, images=images), rel=0.01)
    assert images > 2 * 3500 * usual * (critical + n * usual) / (critical + usual)


def test_batches_of_streams_are_those_of_their_devices() -> None:
    scadles, run = Strategy.from_text("scadles"), RunLength(1000, arriving=51.0)
    assert of_run(scadles, 3, 32, run).images[3] == 51.0
    arriving = RunSettings(strategy=scadles, stream=StreamSpec.from_text("replay:40"))
    assert notes(arriving, run) == []
    assert notes(arriving._replace(stream=None), run) == [
        "batch sizes follow streams of images whose rates are drawn with --seed 0"
    ]


def test_drawn_batches_belong_to_names() -> None:
    both, one = drawn(["a", "b"], 3), drawn(["b"], 3)
    assert both[0] != both[1] == one[0] == float(round(draw_rate("S1", "b", 3)))


def test_a_global_batch_is_made_of_fewer_images_each_and_as_many_in_all() -> None:
    found = of_global(128, 4, 32, RunLength(1000))
    assert found.images[1:] == pytest.approx([128, 64, 128 / 3, 32])
    assert (found.images * found.steps)[1:] == pytest.approx([32.0] * 4)
    assert found.steps[4] == pytest.approx(1.0)


def test_a_larger_global_batch_needs_the_images_that_its_efficiency_tells() -> None:
    run = run_of(1000, sample_efficiency=0.5, critical_batch=96.0)
    found = of_global(128, 2, 32, run)
    assert found.steps[1] == pytest.approx(32 / 128 * (96 + 128) / (96 + 32) / 0.5)
