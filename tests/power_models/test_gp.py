import numpy as np
import pytest

from power_models.gp import FittedProcess, Hyperparameters


def test_the_kernel_of_a_gaussian_process_is_that_of_its_formula() -> None:
    hyper = Hyperparameters(signal=2.0, linear=0.5, noise=0.01, lengths=np.array([0.5, 3.0]))
    a, b = np.array([[0.3, -1.0]]), np.array([[1.0, 0.5]])
    smooth = 2 * np.exp(-(((a - b) / hyper.lengths) ** 2).sum() / 2)
    assert hyper.kernel()(a, b)[0, 0] == pytest.approx(smooth + 0.5 * (1 + (a @ b.T)[0, 0] / 2))
    assert hyper.kernel()(a)[0, 0] == pytest.approx(2 + 0.5 * (1 + (a @ a.T)[0, 0] / 2) + 0.01)


def test_a_gaussian_process_finds_the_noise_and_the_columns_that_matter() -> None:
    random = np.random.default_rng(0)
    inputs = random.standard_normal((120, 3))
    outputs = 5 + np.sin(2 * inputs[:, 0]) + 0.05 * random.standard_normal(120)
    found = FittedProcess.fit(inputs, outputs)
    assert found.stdev * np.sqrt(found.hyper.noise) == pytest.approx(0.05, rel=0.3)
    assert found.hyper.lengths[1:].min() > 3 * found.hyper.lengths[0]
    _, far = found.predict(np.full((1, 3), 50.0))
    assert far[0] > 3 * found.predict(inputs)[1].max()
