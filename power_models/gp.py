"""A Gaussian process predicts the target's logarithm: smooth between rows, uncertain far from them.

    k(a, b) = signal · exp(-½ Σ ((a_i - b_i) / length_i)²)
            + linear · (1 + a·b / columns) + noise · [a is b]

Source: Rasmussen and Williams 2006, ch. 2 and 5; the regressor is scikit-learn's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from power_models.base import Estimate, Regressor, Target, Unsuitable
from power_models.encoding import Encoder
from power_models.stored import Stored
from power_models.table import Floats, Ints, Table

#: With more columns of numbers than this, all of them share one length scale.
MOST_LENGTHS = 12
#: Logarithms far from every row are cut off here: their exponentials are still finite.
LARGEST_LOG = 700.0
#: Rows that the hyperparameters are tuned on, and rows that predictions are made from, at most.
TUNED_ROWS, MOST_ROWS = 300, 1200
#: Prior on the logarithms of signal, linear part and noise: mean, standard deviation.
PRIOR_MEAN, PRIOR_STDEV = (0.0, -1.0, -4.0), (2.0, 2.0, 2.0)
BOUNDS = ((-6.0, 5.0), (-9.0, 5.0), (-9.0, 1.0))
LENGTH_BOUNDS = (-2.0, 6.0)
STEPS = 60


class Hyperparameters(NamedTuple):
    """Variances of standardised outputs, and a length scale for each column of the inputs."""

    signal: float
    linear: float
    noise: float
    lengths: Floats

    def kernel(self) -> Any:
        """The kernel above as scikit-learn's."""
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

        columns = len(self.lengths)
        linear = DotProduct(np.sqrt(columns), sigma_0_bounds="fixed")
        smooth = ConstantKernel(self.signal) * RBF(self.lengths)
        return smooth + ConstantKernel(self.linear / columns) * linear + WhiteKernel(self.noise)


class Posterior(NamedTuple):
    """Mean and standard deviation of an output, noise included."""

    mean: Floats
    stdev: Floats


@dataclass(frozen=True)
class FittedProcess(Stored):
    """A Gaussian process conditioned on inputs (rows, columns) and outputs (rows,).

    outputs: standardised; mean, stdev: of the outputs as they were given.
    """

    inputs: Floats
    outputs: Floats
    hyper: Hyperparameters
    mean: float
    stdev: float

    @classmethod
    def fit(cls, inputs: Floats, outputs: Floats, owners: Ints) -> "FittedProcess":
        """Hyperparameters maximise the marginal likelihood times a wide log-normal prior.

        owners: columns with the same number, 0 to n - 1, share a length scale.
        Raises Unsuitable for rows whose covariance is singular.
        """
        mean, stdev = float(outputs.mean()), float(outputs.std()) or 1.0
        scaled = (outputs - mean) / stdev
        tuned, most = _sample(len(outputs), TUNED_ROWS), _sample(len(outputs), MOST_ROWS)
        hyper = _tuned(inputs[tuned], scaled[tuned], owners)
        made = cls(inputs[most], scaled[most], hyper, mean, stdev)
        assert made.regressor is not None
        return made

    @cached_property
    def regressor(self) -> Any:
        """Conditioned on the inputs and outputs."""
        return _regressor(self.hyper, None, self.inputs, self.outputs)

    def predict(self, inputs: Floats) -> Posterior:
        mean, stdev = self.regressor.predict(inputs, return_std=True)
        return Posterior(self.mean + self.stdev * mean, self.stdev * stdev)


@dataclass(frozen=True)
class GaussianProcess(Regressor):
    """Its intervals are the process's standard deviation times a factor from held-out rows."""

    name: ClassVar[str] = "gp"
    summary: ClassVar[str] = "Gaussian process: smooth, with an interval of its own for each row"

    encoder: Encoder
    process: FittedProcess

    @classmethod
    def fit(cls, table: Table, target: Target) -> Self:
        encoder = Encoder.fit(table, logs=True)
        return cls(encoder, FittedProcess.fit(encoder.matrix(table), target.logs, length_owners(encoder)))

    def predict(self, table: Table) -> Estimate:
        mean, stdev = self.process.predict(self.encoder.matrix(table))
        return Estimate(np.exp(np.clip(mean, -LARGEST_LOG, LARGEST_LOG)), stdev)

    def describe(self) -> str:
        hyper = self.process.hyper
        noise = 100 * self.process.stdev * np.sqrt(hyper.noise)
        return f"noise {noise:.2g} %, {len(self.process.outputs)} rows kept, {len(hyper.lengths)} columns"


def length_owners(encoder: Encoder) -> Ints:
    """The columns of the matrix that share a length scale have the same number.

    They are those of one column of the table, or all numbers where there are many.
    """
    numbers = len(encoder.numeric)
    if numbers <= MOST_LENGTHS:
        return encoder.owners
    return np.maximum(encoder.owners - numbers + 1, 0)


def _sample(rows: int, most: int) -> Ints:
    """All rows, or as many as allowed, drawn without repetition."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).permutation(rows)[:most])


def _tuned(inputs: Floats, outputs: Floats, owners: Ints) -> Hyperparameters:
    """Most probable hyperparameters. They are searched as logarithms, one length for each owner."""
    from scipy.optimize import minimize

    columns, groups = inputs.shape[1], int(owners.max()) + 1
    mean = np.array([*PRIOR_MEAN, *[0.5 * np.log(2 * groups)] * groups])
    stdev = np.array([*PRIOR_STDEV, *[1.0] * groups])
    # Where scikit-learn's parameters (signal, lengths, linear / columns, noise) come from.
    source = np.array([0, *(owners + 3), 1, 2])
    shift = np.zeros(len(source))
    shift[-2] = -np.log(columns)

    def optimizer(loss: Callable[[Floats], tuple[float, Floats]], _: Floats, bounds: object) -> tuple[Floats, float]:
        def penalised(theta: Floats) -> tuple[float, Floats]:
            value, slope = loss(theta[source] + shift)
            off = (theta - mean) / stdev
            return value + float(off @ off) / 2, np.bincount(source, slope, len(theta)) + off / stdev

        limits = [*BOUNDS, *[LENGTH_BOUNDS] * groups]
        found = minimize(penalised, mean, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": STEPS})
        return found.x[source] + shift, found.fun

    signal, linear, noise = np.exp(PRIOR_MEAN).tolist()
    start = Hyperparameters(signal, linear, noise, np.exp(mean[3:])[owners])
    regressor = _regressor(start, optimizer, inputs, outputs)
    signal, *lengths, linear, noise = np.exp(regressor.kernel_.theta).tolist()
    return Hyperparameters(signal, linear * columns, noise, np.array(lengths))


def _regressor(hyper: Hyperparameters, optimizer: Any, inputs: Floats, outputs: Floats) -> Any:
    """scikit-learn's, fitted; without an optimizer the hyperparameters stay as they are."""
    from sklearn.gaussian_process import GaussianProcessRegressor

    try:
        return GaussianProcessRegressor(hyper.kernel(), optimizer=optimizer).fit(inputs, outputs)
    except np.linalg.LinAlgError:
        raise Unsuitable("the covariance of its rows cannot be factorised") from None
