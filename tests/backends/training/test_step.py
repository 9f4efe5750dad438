"""A step computes one gradient, an evaluation the means over a test set of any size."""

import math
import threading

import numpy as np
import pytest

from backends.data.loader import ArraySamples
from backends.frameworks.optimizer import GradientSettings
from backends.jobs.job import ACCURACY
from backends.training import step
from backends.training.compute_clock import EVALUATION, clock_of
from backends.training.step_watch import StepWatch
from tests.backends.fakes import BATCH, TEST, Diverging, DrawnBatches, FaultyBackward, Softmax, images, split
from tests.running import HANG_S


@pytest.mark.parametrize("most", [1, 3, 4, BATCH])
@pytest.mark.parametrize("settings", [GradientSettings(), GradientSettings(0.5, 0.1), GradientSettings(0.5, 0.1, 0.2)])
def test_parts_of_a_batch_come_to_the_gradient_of_the_whole(most, settings) -> None:
    replica, other, batch = Softmax(), Softmax(), images(BATCH)
    loss = step.gradient(replica, split(batch, most), settings)
    assert loss == pytest.approx(step.gradient(other, batch, settings), rel=1e-5)
    np.testing.assert_allclose(replica.gradients, other.gradients, rtol=1e-4, atol=1e-7)


def test_a_long_gradient_is_scaled_down_before_the_weight_decay_and_the_rate_count() -> None:
    replica, plain = Softmax(), Softmax()
    plain.gradient(images(BATCH))
    norm = float(np.linalg.norm(plain.gradients))
    step.gradient(replica, images(BATCH), GradientSettings(0.5, 0.1, norm / 4))
    np.testing.assert_allclose(
        replica.gradients, 0.5 * (plain.gradients / 4 + 0.1 * plain.weights), rtol=1e-4, atol=1e-7
    )


def test_a_gradient_below_the_limit_stays() -> None:
    replica, plain = Softmax(), Softmax()
    plain.gradient(images(BATCH))
    step.gradient(replica, images(BATCH), GradientSettings(clip_norm=100.0))
    np.testing.assert_array_equal(replica.gradients, plain.gradients)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_is_not_made_finite(bad) -> None:
    replica = Diverging(gradient=bad)
    for _ in range(3):
        step.gradient(replica, images(BATCH), GradientSettings(clip_norm=1.0))
    assert not np.isfinite(replica.gradients).all()


def test_a_gradient_that_fails_leaves_the_statistics_of_the_steps_before() -> None:
    replica, batches = FaultyBackward("gradient", 2), DrawnBatches()
    step.step(replica, batches, GradientSettings())
    before = replica.state.copy()
    with pytest.raises(ArithmeticError):
        step.step(replica, batches, GradientSettings())
    np.testing.assert_array_equal(replica.state, before)


@pytest.mark.parametrize("count", [1, BATCH, ArraySamples.most_at_once, 2 * ArraySamples.most_at_once + 1])
def test_an_evaluation_is_the_mean_over_all_images(count) -> None:
    test = images(count, 5)
    loss, metrics = Softmax().evaluate(test)
    scores = step.evaluate(Softmax(), ArraySamples(*test))
    assert scores.loss == pytest.approx(loss, rel=1e-5)
    assert scores.metrics == {ACCURACY: pytest.approx(metrics[ACCURACY])}


def test_a_metric_that_is_not_finite_is_left_out() -> None:
    class Odd(Softmax):
        def evaluate(self, batch):
            loss, metrics = super().evaluate(batch)
            return loss, {**metrics, "odd": math.nan, "ratio": math.inf}

    assert set(step.evaluate(Odd(), TEST).metrics) == {ACCURACY}


def test_an_evaluation_that_hangs_is_told_as_one() -> None:
    told: list[str] = []
    heard = threading.Event()

    class Hanging(Softmax):
        def evaluate(self, batch: object) -> object:
            assert heard.wait(HANG_S)
            return super().evaluate(batch)

    def on_hung(reason: str) -> None:
        told.append(reason)
        heard.set()

    replica = Hanging()
    with StepWatch(clock_of(replica), 0.01, first_s=0.01, on_hung=on_hung):
        step.evaluate(replica, ArraySamples(*images(BATCH)))
    assert told[0].startswith(f"{EVALUATION}, the first, has taken 0 s")
